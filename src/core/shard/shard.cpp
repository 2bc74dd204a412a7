#include "core/shard/shard.hpp"

#include <utility>

#include "core/shard/failures.hpp"
#include "core/shard/leader_observer.hpp"

namespace dlock::detail {

Shard::Shard(std::shared_ptr<ClientContext> context) : context_(std::move(context)) {}

Shard::~Shard() = default;

// --- Acquires --------------------------------------------------------------------------------------------------------

void Shard::acquire_ended(const AcquireResult& result, bool waited) noexcept {
  subtract(counters_.waiting);
  const auto& code = result.failure.code;
  if (result.lease) {
    add(counters_.acquired);
  } else if (code == errc::timed_out) {
    add(waited ? counters_.timed_out : counters_.busy);
  } else if (code == errc::cancelled) {
    add(counters_.cancelled);
  } else {
    add(counters_.failed);
  }
}

void Shard::keep(std::shared_ptr<Acquisition> acquisition) {
  acquisition->set_number(++last_acquisition_);
  acquisitions_.emplace(last_acquisition_, std::move(acquisition));
}

void Shard::forget(Acquisition& acquisition) noexcept {
  acquisition.end_contention();
  acquisitions_.erase(acquisition.number());
}

void Shard::forget_later(Acquisition& acquisition) {
  engine().post([weak = weak_from_this(), forgotten = acquisition.shared_from_this()] {
    if (const auto shard = weak.lock()) shard->forget(*forgotten);
  });
}

// --- Observers of elections ------------------------------------------------------------------------------------------

void Shard::keep(std::shared_ptr<LeaderObserver> observer) {
  LeaderObserver* const key = observer.get();
  observers_.emplace(key, std::move(observer));
}

void Shard::forget(LeaderObserver& observer) noexcept {
  observers_.erase(&observer);
}

// --- The backend's host ----------------------------------------------------------------------------------------------

void Shard::connection(ConnectionEvent event) {
  if (event.state == ConnectionEvent::State::reconnecting) {
    add(counters_.reconnects);
    interrupted_ = true;
  } else if (std::exchange(interrupted_, false)) {
    // Not from inside: the backend is just telling.
    engine().post([weak = weak_from_this()] {
      if (const auto shard = weak.lock()) shard->leases_.reconnected();
    });
  }
  notifier().tell([event = std::move(event)](Observer& observer) { observer.connection(event); });
}

void Shard::warn(WarningEvent event) {
  notifier().tell([event = std::move(event)](Observer& observer) { observer.warning(event); });
}

OwnerId Shard::new_owner_id() {
  const auto high = engine().random();
  return {high, engine().random()};
}

// --- Close -----------------------------------------------------------------------------------------------------------

void Shard::begin_close(Task closed) {
  closing_.store(true, std::memory_order_release);
  const auto acquisitions = std::exchange(acquisitions_, {});
  for (const auto& [number, acquisition] : acquisitions) acquisition->abort(failures::closed());
  // Before the backend is told to close.
  for (const auto& [number, acquisition] : acquisitions) acquisition->end_contention();
  const auto observers = std::exchange(observers_, {});
  for (const auto& [key, observer] : observers) observer->end();
  leases_.close();
  closed_ = std::move(closed);  // only now: a release that is answered at once must not end what others still need
  release_answered();
}

void Shard::release_answered() {
  if (!closed_ || leases_.pending_releases() != 0) return;
  backend_->close([closed = std::make_shared<Task>(std::move(closed_))] { (*closed)(); });
}

void Shard::end_close() noexcept {
  closed_ = nullptr;  // if releases are still under way it may hold us
  backend_.reset();
}

}  // namespace dlock::detail
