#include "backends/common/refusals.hpp"

#include <utility>

#include "util/duration_text.hpp"

namespace dlock::common {

namespace {

class NoContention final : public Contention {};

}  // namespace

std::unique_ptr<Contention> refuse(GrantSink& sink, Failure why) {
  sink.failed(std::move(why));
  return std::make_unique<NoContention>();
}

std::optional<Failure> problem_with_lease(std::chrono::nanoseconds lease, std::chrono::nanoseconds default_lease,
                                          std::chrono::nanoseconds session, const std::string& parameter) {
  if (lease <= session || lease == default_lease) return std::nullopt;
  return Failure{errc::invalid_argument, "lease: " + util::to_text(lease) +
                                             " is longer than the session lasts without its client; raise " +
                                             parameter + " above " + util::to_text(session)};
}

}  // namespace dlock::common
