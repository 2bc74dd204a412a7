#include "mutants/mutant_fixture.hpp"

#include <utility>

#include "mutants/mutant_backend.hpp"

namespace dlock::conformance {

MutantFixture::MutantFixture(Mutation mutation) : service_(std::make_shared<MutantService>(mutation)) {}
MutantFixture::~MutantFixture() = default;

Client MutantFixture::make_client(ClientOptions options, Link link) {
  if (link == Link::disturbed) options.label = "disturbed";
  return connect(url(), std::move(options), [service = service_](BackendHost& host, const BackendConfig& config) {
    return std::make_unique<MutantBackend>(host, config, service);
  });
}

std::optional<Missing> MutantFixture::missing(Feature feature) const {
  switch (feature) {
    case Feature::step_clock:
    case Feature::kill_hold:
    case Feature::cut:
    case Feature::residue:
      return std::nullopt;
    default:
      return Missing{Missing::Kind::not_applicable, "the mutants' service is a map within this process"};
  }
}

std::shared_ptr<ManualClock> MutantFixture::clock() {
  if (!clock_) clock_ = std::make_shared<ManualClock>();
  return clock_;
}

TimePoint MutantFixture::now() const {
  return clock_ ? clock_->now() : LeaseClock::now();
}

void MutantFixture::kill_hold(const std::string& name) {
  (void)service_->break_lock(name, now());
}

std::size_t MutantFixture::residue(const std::string& name) {
  return service_->residue(name, now());
}

}  // namespace dlock::conformance
