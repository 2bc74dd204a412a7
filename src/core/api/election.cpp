#include <dlock/election.hpp>

#include <utility>

#include <dlock/options.hpp>

#include "core/api/lock_impl.hpp"
#include "core/api/question.hpp"
#include "core/client/leader_observer.hpp"

namespace dlock {

namespace {

detail::LockImpl candidate(const detail::ElectionImpl& election, const CampaignOptions& options) {
  return detail::LockImpl({election.core, election.name, LockKind::election, 1, options.value});
}

AcquireOptions acquire_options(const CampaignOptions& options) {
  return {.wait = options.wait, .lease = options.lease, .renew = options.renew, .cancel = options.cancel};
}

}  // namespace

// --- Observation -----------------------------------------------------------------------------------------------------

Observation::Observation(std::shared_ptr<detail::LeaderObserver> observer) noexcept : observer_(std::move(observer)) {}

Observation& Observation::operator=(Observation&& other) noexcept {
  if (this != &other) {
    const Observation old(std::exchange(observer_, std::move(other.observer_)));
  }
  return *this;
}

Observation::~Observation() {
  if (observer_) observer_->stop();
}

// --- Election --------------------------------------------------------------------------------------------------------

Election::Election(std::unique_ptr<detail::ElectionImpl> impl) noexcept : impl_(std::move(impl)) {}
Election::Election(Election&&) noexcept = default;
Election& Election::operator=(Election&&) noexcept = default;
Election::~Election() = default;

const std::string& Election::name() const noexcept {
  return impl_->name;
}

Lease Election::campaign(const CampaignOptions& options) {
  return candidate(*impl_, options).acquire(Mode::exclusive, acquire_options(options)).or_throw();
}

Lease Election::campaign(const CampaignOptions& options, std::error_code& ec) {
  return candidate(*impl_, options).acquire(Mode::exclusive, acquire_options(options)).or_code(ec);
}

std::optional<Lease> Election::try_campaign(CampaignOptions options) {
  return try_campaign_for(Duration(), std::move(options));
}

std::optional<Lease> Election::try_campaign(CampaignOptions options, std::error_code& ec) {
  return try_campaign_for(Duration(), std::move(options), ec);
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): as in DistributedLock
std::optional<Lease> Election::try_campaign_for(Duration wait, CampaignOptions options) {
  return candidate(*impl_, options).try_acquire(Mode::exclusive, wait, acquire_options(options)).unless_busy();
}

// NOLINTNEXTLINE(performance-unnecessary-value-param)
std::optional<Lease> Election::try_campaign_for(Duration wait, CampaignOptions options, std::error_code& ec) {
  return candidate(*impl_, options).try_acquire(Mode::exclusive, wait, acquire_options(options)).unless_busy(ec);
}

void Election::start_campaign(const CampaignOptions& options, detail::Completion<Lease> handler) {
  candidate(*impl_, options).start_acquire(Mode::exclusive, acquire_options(options), std::move(handler));
}

void Election::run(const std::stop_token& stop, CampaignOptions options, const Leading& f) {
  options.wait = forever;
  options.cancel = stop;
  while (!stop.stop_requested()) {
    auto outcome = candidate(*impl_, options).acquire(Mode::exclusive, acquire_options(options));
    if (outcome.failure.code == errc::cancelled) return;
    const Lease leading = std::move(outcome).or_throw();
    std::stop_source over;
    const auto end = [&over] { over.request_stop(); };
    const std::stop_callback at_stop(stop, end);
    const std::stop_callback at_loss(leading.ended(), end);
    f(leading, over.get_token());
  }
}

void Election::run(const std::stop_token& stop, const Leading& f) {
  run(stop, {}, f);
}

std::optional<Leader> Election::leader() const {
  return detail::leader_of(
      detail::ask_or_throw<LockInfo>(impl_->core, &Backend::inspect, LockKind::election, impl_->name));
}

std::optional<Leader> Election::leader(std::error_code& ec) const {
  return detail::value_or_code([this] { return leader(); }, ec);
}

Observation Election::observe(std::function<void(const std::optional<Leader>&)> handler) const {
  auto observer = std::make_shared<detail::LeaderObserver>(impl_->core, impl_->name, std::move(handler));
  observer->begin();
  return Observation(std::move(observer));
}

}  // namespace dlock
