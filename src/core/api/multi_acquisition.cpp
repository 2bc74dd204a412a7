#include "core/api/multi_acquisition.hpp"

#include <algorithm>
#include <utility>

#include "core/client/blocking.hpp"
#include "core/client/failures.hpp"
#include "core/client/lease_record.hpp"

namespace dlock::detail {

namespace {

// If the locks are of several clients: by the clock of the first one that is asked.
TimePoint now_of(const LockPlaces& locks) {
  return locks.places[locks.order.front()].core->executor().now();
}

std::function<void()> stopping(const std::stop_source& source) {
  return [source] { (void)source.request_stop(); };
}

}  // namespace

MultiAcquisition::MultiAcquisition(std::shared_ptr<const LockPlaces> locks, AcquireOptions options,
                                   Completion<MultiLease> handler)
    : locks_(std::move(locks)),
      options_(std::move(options)),
      deadline_(saturating_add(now_of(*locks_), options_.wait.value())),
      handler_(std::move(handler)),
      leases_(std::make_shared<MultiLeaseState>(locks_)) {
  if (options_.cancel.stop_possible()) on_cancel_.emplace(options_.cancel, stopping(stop_));
  on_loss_.emplace(leases_->lost_token(), stopping(stop_));
}

void MultiAcquisition::begin() {
  if (auto why = problem()) return finish(next(), *std::move(why));
  ask();
}

Outcome<MultiLease> MultiAcquisition::run() {
  if (auto why = problem()) return {.failure = *std::move(why)};
  if (leases_->must_not_block()) {
    const bool closed = std::ranges::any_of(locks_->places, [](const auto& place) { return place.core->closing(); });
    return {.failure = closed ? failures::closed() : would_deadlock()};
  }
  ask();
  const ClientCore& first = *locks_->places.front().core;
  const bool one_client =
      std::ranges::all_of(locks_->places, [&](const LockPlace& place) { return place.core.get() == &first; });
  (void)(one_client ? first.engine().wait(ended_) : ended_.wait());
  if (!failure_.code) return {.lease = MultiLeaseState::make_lease(std::move(leases_))};
  leases_->let_go();
  return {.failure = std::move(failure_)};
}

std::optional<Failure> MultiAcquisition::problem() const {
  if (!options_.lease) return std::nullopt;
  for (const LockPlace& place : locks_->places) {
    if (auto why = place.core->context().problem_with_lease(options_.lease->value())) {
      return naming(place.name, *std::move(why));
    }
  }
  return std::nullopt;
}

void MultiAcquisition::ask() {
  AcquireOptions options = options_;
  options.cancel = stop_.get_token();
  if (got_ > 0) options.wait = time_left(deadline_, now_of(*locks_));
  const LockPlace& place = next();
  const auto self = shared_from_this();
  std::thread::id here = std::this_thread::get_id();
  asking_ = here;
  (void)start_acquire(
      place.core, place.target(), std::move(options),
      [self](AcquireResult result) { self->answered(std::move(result)); },
      handler_ ? engine::IfBusy::leave_task : place.core->if_busy());
  // Not if the answer has come already, and another thread requests the next lock.
  (void)asking_.compare_exchange_strong(here, std::thread::id());
}

void MultiAcquisition::answered(AcquireResult result) {
  // Usually a task of the next lock's client. If that client is closed, this runs inside ask(), in a task of the client
  // before it, which then has to run the handler: the closed one would run it right here.
  const bool inside_ask = got_ > 0 && asking_ == std::this_thread::get_id();
  const LockPlace& by = inside_ask ? locks_->places[locks_->order[got_ - 1]] : next();
  if (!result.lease) {
    Failure why = std::move(result.failure);
    if (why.code == errc::cancelled && !options_.cancel.stop_requested()) {
      if (auto lost = loss("the wait for lock \"" + next().name + "\" ended")) return finish(by, *std::move(lost));
    }
    return finish(by, naming(next().name, std::move(why)));
  }
  leases_->put(locks_->order[got_++], LeaseRecord::make_lease(std::move(result.lease)));
  if (got_ < locks_->order.size()) return ask();
  finish(by, loss("all locks were acquired").value_or(Failure{}));
}

std::optional<Failure> MultiAcquisition::loss(const std::string& before) const {
  for (std::size_t k = 0; k < got_; ++k) {
    const std::size_t i = locks_->order[k];
    if (leases_->leases()[i].held()) continue;
    const LockPlace& place = locks_->places[i];
    if (place.core->closing()) return naming(place.name, failures::closed());
    return Failure{errc::lost, "lock \"" + place.name + "\" was lost before " + before};
  }
  return std::nullopt;
}

void MultiAcquisition::finish(const LockPlace& by, Failure failure) {
  on_cancel_.reset();
  on_loss_.reset();
  if (!handler_) {
    failure_ = std::move(failure);
    ended_.set();
    return;
  }
  MultiLease lease;
  if (failure.code) {
    (void)leases_->begin_release(false);
    leases_ = nullptr;
  } else {
    lease = MultiLeaseState::make_lease(std::move(leases_));
  }
  by.core->notifier().complete([handler = std::move(handler_), failure = std::move(failure),
                                lease = std::move(lease)]() mutable { handler(failure, std::move(lease)); });
}

}  // namespace dlock::detail
