#include "core/client/multi_acquisition.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/shard/failures.hpp"
#include "core/shard/lease_state.hpp"

namespace dlock::detail {

namespace {

// Locks of several clients: the clock of the one that is asked first.
TimePoint now_of(const LockPlaces& locks) {
  return locks.places[locks.order.front()].shard->executor().now();
}

std::function<void()> stopping(const std::stop_source& source) {
  return [source] { (void)source.request_stop(); };
}

}  // namespace

// --- What is asked for -----------------------------------------------------------------------------------------------

MultiAttempt::MultiAttempt(std::shared_ptr<const LockPlaces> locks, AcquireOptions options)
    : locks_(std::move(locks)),
      options_(std::move(options)),
      deadline_(saturating_add(now_of(*locks_), options_.wait.value())),
      leases_(std::make_shared<MultiLeaseState>(locks_)) {
  if (options_.cancel.stop_possible()) on_cancel_.emplace(options_.cancel, stopping(stop_));
  on_loss_.emplace(leases_->lost_token(), stopping(stop_));
}

std::optional<Failure> MultiAttempt::problem() const {
  if (!options_.lease) return std::nullopt;
  for (const LockPlace& place : locks_->places) {
    if (auto why = place.shard->context().problem_with_lease(options_.lease->value())) {
      return naming(place.name, *std::move(why));
    }
  }
  return std::nullopt;
}

bool MultiAttempt::may_try_all() const noexcept {
  const auto& shard = locks_->places.front().shard;
  const std::size_t count = locks_->places.size();
  return count > 1 && count <= shard->context().capabilities.most_at_once &&
         std::ranges::all_of(locks_->places, [&](const LockPlace& place) { return place.shard == shard; });
}

std::shared_ptr<Acquisition> MultiAttempt::all(AcquireCompletion done) const {
  AcquireOptions options = options_;
  options.cancel = stop_.get_token();
  options.wait = Duration();
  std::vector<Target> others;
  others.reserve(locks_->order.size() - 1);
  for (std::size_t k = 1; k < locks_->order.size(); ++k) others.push_back(locks_->places[locks_->order[k]].target());
  return std::make_shared<Acquisition>(next().shard, next().target(), std::move(options), std::move(done), others);
}

void MultiAttempt::got_all(Lease first, std::vector<Lease> others) {
  got(std::move(first));
  for (Lease& other : others) got(std::move(other));
}

std::optional<Failure> MultiAttempt::cannot(const Failure& why) {
  begun_ = true;
  if (why.code == errc::timed_out || why.code == errc::unsupported) return std::nullopt;
  if (time_left(deadline_, now_of(*locks_)) > Duration()) return std::nullopt;  // it shows again, with its lock
  return failed(why);
}

AcquireOptions MultiAttempt::next_options() const {
  AcquireOptions options = options_;
  options.cancel = stop_.get_token();
  if (got_ > 0 || begun_) options.wait = time_left(deadline_, now_of(*locks_));
  return options;
}

void MultiAttempt::got(Lease lease) {
  leases_->put(locks_->order[got_], std::move(lease));
  ++got_;
}

Failure MultiAttempt::failed(Failure why) const {
  if (why.code == errc::cancelled && !options_.cancel.stop_requested()) {
    if (auto lost = loss("the wait for lock \"" + next().name + "\" ended")) return *std::move(lost);
  }
  return naming(next().name, std::move(why));
}

std::optional<Failure> MultiAttempt::loss() const {
  return loss("all locks were acquired");
}

std::optional<Failure> MultiAttempt::loss(const std::string& before) const {
  const auto lost = std::find_if(locks_->order.begin(), locks_->order.begin() + static_cast<std::ptrdiff_t>(got_),
                                 [this](std::size_t i) { return !leases_->leases()[i].held(); });
  if (lost == locks_->order.begin() + static_cast<std::ptrdiff_t>(got_)) return std::nullopt;
  const LockPlace& place = locks_->places[*lost];
  if (place.shard->closing()) return naming(place.name, failures::closed());
  return Failure{errc::lost, "lock \"" + place.name + "\" was lost before " + before};
}

void MultiAttempt::end() noexcept {
  on_cancel_.reset();
  on_loss_.reset();
}

// --- Without blocking ------------------------------------------------------------------------------------------------

MultiAcquisition::MultiAcquisition(std::shared_ptr<const LockPlaces> locks, AcquireOptions options,
                                   Completion<MultiLease> handler)
    : attempt_(std::move(locks), std::move(options)), handler_(std::move(handler)) {}

void MultiAcquisition::begin() {
  if (auto why = attempt_.problem()) return finish(attempt_.next(), *std::move(why));
  if (attempt_.may_try_all()) return ask_for_all();
  ask();
}

void MultiAcquisition::ask_for_all() {
  attempt_.all([self = shared_from_this()](AcquireResult result) { self->all_answered(std::move(result)); })
      ->begin(engine::IfBusy::leave_task);
}

void MultiAcquisition::all_answered(AcquireResult result) {
  if (!result.lease) {
    if (auto why = attempt_.cannot(result.failure)) return finish(attempt_.next(), *std::move(why));
    return ask();
  }
  const LockPlace& by = attempt_.next();
  std::vector<Lease> others;
  others.reserve(result.others.size());
  for (auto& other : result.others) others.push_back(LeaseState::make_lease(std::move(other)));
  attempt_.got_all(LeaseState::make_lease(std::move(result.lease)), std::move(others));
  finish(by, attempt_.loss().value_or(Failure{}));
}

void MultiAcquisition::ask() {
  const auto self = shared_from_this();
  const LockPlace& place = attempt_.next();
  const auto acquisition =
      std::make_shared<Acquisition>(place.shard, place.target(), attempt_.next_options(),
                                    [self](AcquireResult result) { self->answered(std::move(result)); });
  std::thread::id here = std::this_thread::get_id();
  asking_ = here;
  acquisition->begin(engine::IfBusy::leave_task);
  // Unless the answer has come, and another thread asks for the next one.
  (void)asking_.compare_exchange_strong(here, std::thread::id());
}

void MultiAcquisition::answered(AcquireResult result) {
  // Usually this is a task of the lock that was asked for. Inside ask() it may be that of the one before: where the
  // client of this one is closed. No handler may run inside of that.
  const LockPlace* const before = attempt_.before();
  const bool inside_ask = asking_ == std::this_thread::get_id();
  const LockPlace& by = inside_ask && before != nullptr ? *before : attempt_.next();
  if (!result.lease) return finish(by, attempt_.failed(std::move(result.failure)));
  attempt_.got(LeaseState::make_lease(std::move(result.lease)));
  if (!attempt_.complete()) return ask();
  finish(by, attempt_.loss().value_or(Failure{}));
}

void MultiAcquisition::finish(const LockPlace& by, Failure failure) {
  attempt_.end();
  auto leases = attempt_.take_leases();
  if (failure.code) {
    (void)leases->begin_release(false);
    leases = nullptr;
  }
  by.shard->notifier().complete([handler = std::move(handler_), failure = std::move(failure),
                                 lease = leases ? MultiLeaseState::make_lease(std::move(leases))
                                                : MultiLease()]() mutable { handler(failure, std::move(lease)); });
}

}  // namespace dlock::detail
