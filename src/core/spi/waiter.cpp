#include <dlock/spi/waiter.hpp>

#include <algorithm>

#include <dlock/duration.hpp>

namespace dlock {

namespace {

// So that no back-off and no poll becomes a busy loop.
constexpr std::chrono::nanoseconds shortest_pause = std::chrono::milliseconds(1);

bool is_temporary(const Failure& why) noexcept {
  return why.code == errc::unavailable || why.code == errc::ambiguous;
}

}  // namespace

Waiter::Waiter(Executor& executor, const LockRequest& request, GrantSink& sink, Backoff backoff)
    : executor_(executor), request_(request), sink_(sink), backoff_(backoff), timer_(executor) {}

void Waiter::enter(Stage stage) {
  ++round_;
  stage_ = stage;
  woken_ = false;
  timer_.disarm();
  entered(stage);
}

void Waiter::run_after(std::chrono::nanoseconds pause, Executor::Task task) {
  timer_.arm(saturating_add(executor_.now(), std::max(pause, shortest_pause)), std::move(task));
}

void Waiter::start_request() {
  enter(Stage::requesting);
}

void Waiter::proceed() {
  if (may_send()) resume();
}

void Waiter::wake() {
  switch (stage_) {
    case Stage::requesting:
      woken_ = true;
      return;
    case Stage::backing_off:
      return proceed();
    case Stage::waiting:
      if (may_send()) woken();
      return;
    case Stage::no_session:
    case Stage::done:
      return;
  }
}

void Waiter::wait(std::chrono::nanoseconds check_after) {
  const bool woken_meanwhile = woken_;
  enter(Stage::waiting);
  backoff_.reset();
  sink_.busy();
  if (woken_meanwhile) return wake();
  if (check_after == never) return;
  run_after(check_after, [this] {
    if (may_send()) check();
  });
}

void Waiter::retry_later() {
  enter(Stage::backing_off);
  run_after(backoff_.next(executor_), [this] { proceed(); });
}

void Waiter::failed(const Failure& why) {
  if (!request_.wait || !is_temporary(why)) return ended(why);
  retry_later();
  sink_.unreachable(why);
}

void Waiter::granted(Grant grant) {
  enter(Stage::done);
  sink_.granted(std::move(grant));
}

void Waiter::busy() {
  cancel();
  sink_.busy();
}

void Waiter::ended(Failure why) {
  cancel();
  sink_.failed(std::move(why));
}

void Waiter::cancel() {
  if (stage_ == Stage::done) return;
  enter(Stage::done);  // first, so that no wake-up from inside give_up() sends a request
  give_up();
}

// --- Waiters of a session --------------------------------------------------------------------------------------------

SessionWaiter::SessionWaiter(SessionWaiters& session, const LockRequest& request, GrantSink& sink)
    : Waiter(session.executor_, request, sink), session_(session), id_(++session.last_id_) {
  session_.waiters_.emplace(id_, this);
}

SessionWaiter::~SessionWaiter() {
  session_.waiters_.erase(id_);
}

void SessionWaiter::start() {
  proceed();
  // Notifies a waiter. A try finds out by itself, because the reason may be out of date.
  if (stage() == Stage::no_session && request().wait && session_.problem_.code) sink().unreachable(session_.problem_);
}

bool SessionWaiter::may_send() {
  if (session_.session_usable()) return true;
  wait_for_session();
  return false;
}

void SessionWaiter::wait_for_session() {
  enter(Stage::no_session);
  if (!request().wait) {
    // A try ends with the first problem that it reports. The connection may be back in a moment, so it reports late.
    run_after(session_.response_timeout_ / 4 * 3, [this] { sink().unreachable(session_.session_problem()); });
  }
  session_.want_session();
}

std::optional<Grant> SessionWaiter::grant_of(FencingToken token) {
  if (!may_send()) return std::nullopt;
  const TimePoint valid_until = session_.session_valid_until();
  if (may_be_over(valid_until, executor().now())) {
    retry_later();
    return std::nullopt;
  }
  return Grant{.name = request().name,
               .owner = request().owner,
               .token = token,
               .valid_until = valid_until,
               .lease = session_.session_lease(),
               .kind = request().kind,
               .mode = request().mode};
}

void SessionWaiter::session_ready() {
  if (stage() == Stage::waiting) return sink().busy();
  if (stage() == Stage::no_session || stage() == Stage::backing_off) proceed();
}

void SessionWaiter::session_suspended(const Failure& why) {
  if (stage() == Stage::done) return;
  if (!is_temporary(why)) return ended(why);
  if (request().wait) sink().unreachable(why);
}

void SessionWaiter::session_lost(const Failure& why) {
  if (stage() == Stage::done) return;
  place_lost();
  wait_for_session();
  if (request().wait) sink().unreachable({errc::unavailable, why.detail});
}

// A call may destroy waiters and start new ones, which are skipped.
template <class F>
void SessionWaiters::for_each(F&& f) {
  const std::uint64_t last = last_id_;
  for (auto each = waiters_.begin(); each != waiters_.end() && each->first <= last;) {
    const std::uint64_t id = each->first;
    f(*each->second);
    each = waiters_.upper_bound(id);
  }
}

void SessionWaiters::session_ready() {
  problem_ = {};
  for_each([](SessionWaiter& each) { each.session_ready(); });
}

void SessionWaiters::session_suspended(const Failure& why) {
  problem_ = why;
  for_each([&why](SessionWaiter& each) { each.session_suspended(why); });
}

void SessionWaiters::session_lost(const Failure& why) {
  problem_ = {errc::unavailable, why.detail};
  for_each([&why](SessionWaiter& each) { each.session_lost(why); });
}

}  // namespace dlock
