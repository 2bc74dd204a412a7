#include "backends/redis/waiting/queue_contention.hpp"

#include <algorithm>
#include <utility>

#include "backends/redis/requests/keys.hpp"
#include "backends/redis/requests/scripts.hpp"
#include "backends/redis/timing.hpp"
#include "backends/redis/waiting/check_time.hpp"
#include "backends/redis/waiting/wake_ups.hpp"

namespace dlock::redis {

QueueContention::QueueContention(WakeUps& wake_ups, const LockRequest& request, GrantSink& sink)
    : Waiter(wake_ups.executor(), request, sink, Backoff(std::chrono::seconds(1))),
      wake_ups_(wake_ups),
      lock_key_(redis::lock_key(wake_ups.topology_.options(), request.name, request.kind)),
      channel_(wake_ups.join(request.owner, *this)) {}

void QueueContention::entered(Stage stage) {
  if (stage == Stage::done) wake_ups_.leave(request().owner, channel_.name());
}

void QueueContention::give_up() {
  const bool sent = in_flight_ && !wake_ups_.acquirer_.withdraw(request_id_);
  if (sent || maybe_known_) wake_ups_.cleanup_.abandon(request(), unanswered_);
}

void QueueContention::resume() {
  start_request();
  holder_expires_ = TimePoint::max();
  subscription_of_request_ = channel_.subscription();
  claims_ticket_ =
      ticket_ > 0 && subscription_of_ticket_ != subscription_of_request_ && executor().now() < ticket_until_;
  const Place place = {.mode = channel_.reachable() ? AcquireMode::queue : AcquireMode::blind,
                       .ticket = claims_ticket_ ? ticket_ : 0};
  in_flight_ = true;
  request_id_ = wake_ups_.acquirer_.start(
      request(), place, wake_ups_.topology_.answer_by(),
      on_answer([this](const Result<AcquireAnswer>& answer, TimePoint sent) { answered(answer, sent); }));
}

void QueueContention::answered(const Result<AcquireAnswer>& result, TimePoint sent) {
  in_flight_ = false;
  if (!result.ok()) {
    const Failure& why = result.failure();
    // After a malformed answer, the outcome is unknown.
    if (why.code == errc::ambiguous || why.code == errc::protocol) maybe_known_ = unanswered_ = true;
    return failed(why);
  }
  const AcquireAnswer& answer = result.value();
  if (answer.granted) {
    if (unanswered_) wake_ups_.cleanup_.in_doubt(request().owner, alive_for);
    return granted(grant_of(request(), answer, sent));
  }
  channel_.subscribe();
  if (answer.joined) {
    watches_holder_ = false;  // a waiter that has just joined was not told to watch
    // It lost its place: its channel may be unreachable, or the releasing clients may not publish.
    if (maybe_known_) {
      if (ticket_ > 0 && !claims_ticket_) overlooked_ = true;
      channel_.probe();
    }
  }
  maybe_known_ = true;
  ticket_ = answer.ticket;
  ticket_until_ = saturating_add(sent, alive_for);
  subscription_of_ticket_ = subscription_of_request_;
  const CheckBasis basis = {
      .reachable = channel_.reachable() && !overlooked_,
      .foreign_lockers = wake_ups_.topology_.options().prefix.empty() && !several_hold(request().kind),
      .watches_holder = watches_holder_};
  check_at_ = std::min(time_to_check(answer, basis, executor()), holder_expires_);
  wait(check_at_ - executor().now());
}

void QueueContention::on_wake_up() {
  overlooked_ = false;
  wake();
}

void QueueContention::on_watch(std::chrono::nanoseconds free_in) {
  overlooked_ = false;
  watches_holder_ = true;
  const std::chrono::nanoseconds pause = just_after(free_in, executor());
  const TimePoint at = saturating_add(executor().now(), pause);
  if (stage() == Stage::requesting) holder_expires_ = at;  // the answer may be older than this message
  if (stage() != Stage::waiting || check_at_ <= at) return;
  check_at_ = at;
  run_after(pause, [this] { resume(); });
}

bool QueueContention::on_recovered() {
  if (stage() != Stage::waiting && stage() != Stage::backing_off) return false;
  resume();
  return true;
}

}  // namespace dlock::redis
