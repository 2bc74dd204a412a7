#include "backends/zookeeper/session_locks.hpp"

#include <algorithm>
#include <utility>

#include "backends/common/reconnect.hpp"
#include "backends/common/refusals.hpp"
#include "util/duration_text.hpp"
#include "util/names.hpp"

namespace dlock::zookeeper {

namespace {

constexpr std::chrono::milliseconds min_lease{1};

}  // namespace

SessionLocks::SessionLocks(BackendHost& host, Options options, std::chrono::nanoseconds default_lease,
                           HandleFactory handles, ServerAsker asker)
    : host_(host),
      options_(std::move(options)),
      default_lease_(default_lease),
      session_(host.executor(), options_, std::move(handles), *this),
      requests_(session_),
      watches_(host.executor(), session_, options_.chroot.size()),
      parents_(requests_, options_),
      removals_(host.executor(), requests_, options_.response_timeout,
                [&host](Failure why) { host.warn({.name = "", .reason = std::move(why)}); }),
      holds_(host, requests_, watches_, removals_),
      lock_watches_(host.executor(), requests_, watches_),
      contentions_(host, options_, requests_, watches_, parents_, removals_, holds_),
      queries_(host.executor(), session_, options_.response_timeout),
      ask_(std::move(asker)),
      news_(host) {}

SessionLocks::~SessionLocks() = default;

Capabilities SessionLocks::capabilities() const noexcept {
  const bool queue = options_.strategy != Strategy::ephemeral;
  return {
      .backend = "zookeeper",
      .strategy = to_string(options_.strategy),
      .scope = Scope::network,
      .lease_kind = LeaseKind::session,
      .fencing = FencingDurability::service,
      .fair = queue,
      .wakes_waiters = true,
      .wakes_one = options_.strategy == Strategy::sequential,
      .counts_waiters = queue,
      .read_write_locks = options_.strategy == Strategy::sequential,
      .semaphores = options_.strategy == Strategy::sequential,
      .elections = true,
      .can_inspect = true,
      .can_list = true,
      .can_break = true,
      .can_forget = true,
      .close_on_exec = false,  // libzookeeper opens its socket and its pipe without the flag
      .min_lease = min_lease,
      .max_lease = std::max<std::chrono::nanoseconds>(options_.session_timeout, default_lease_),
  };
}

// --- Locks -----------------------------------------------------------------------------------------------------------

std::unique_ptr<Contention> SessionLocks::contend(const LockRequest& request, GrantSink& sink) {
  auto problem = options_.problem_with(request.name);
  if (!problem) {
    problem = common::problem_with_lease(request.lease, default_lease_, options_.session_timeout, "session_timeout");
  }
  if (problem) return common::refuse(sink, *std::move(problem));
  LockRequest with_value = request;
  with_value.holder = holder_text(request);  // the node has no other data
  return contentions_.contend(with_value, sink);
}

std::unique_ptr<Watch> SessionLocks::watch(LockKind kind, const std::string& name, std::function<void()> changed) {
  using What = LockWatches::What;
  const What what = options_.strategy == Strategy::ephemeral ? What::node : What::queue;
  return lock_watches_.watch(what, lock_path(options_.prefix, name, kind), std::move(changed));
}

void SessionLocks::release(const Grant& grant, ReleaseHandler done) {
  auto node = holds_.take(grant.owner);
  if (!node) return done({.status = ReleaseOutcome::Status::not_owner});
  removals_.remove(*std::move(node), std::move(done));
}

void SessionLocks::close(std::function<void()> done) {
  // The end of the session removes its nodes, all at once.
  if (removals_.size() == 0 || (session_.ready() && removals_.only_of_this_session())) {
    return session_.close(std::move(done));
  }
  removals_.finish([this, done = std::move(done)] {
    // In a later task: the session is just delivering an answer.
    host_.executor().post(lifetime_.guard([this, done] { session_.close(done); }));
  });
}

// --- The session -----------------------------------------------------------------------------------------------------

bool SessionLocks::unused() const noexcept {
  return holds_.empty() && lock_watches_.empty() && contentions_.unused() && removals_.size() == 0 &&
         requests_.writes_under_way() == 0;
}

void SessionLocks::rest() {
  connection_.not_needed();
  was_good_ = false;
  session_.rest();
  // Nothing is lost, but the known state of the session is outdated.
  removals_.session_lost();
  holds_.session_lost({});
}

void SessionLocks::session_ready(bool fresh) {
  if (fresh) warn_of_short_session();
  removals_.session_ready(fresh);  // removals before new requests
  contentions_.session_ready();
  lock_watches_.session_ready();
  queries_.session_ready();
}

void SessionLocks::session_good() {
  was_good_ = true;
  connection_.connected();
}

void SessionLocks::session_alive(TimePoint valid_until) {
  holds_.session_alive(valid_until);
}

void SessionLocks::session_suspended(const Failure& why) {
  broken(why);
  contentions_.session_suspended(why);
  if (common::is_final_refusal(why)) queries_.session_refused(why);
}

void SessionLocks::session_lost(const Failure& why) {
  broken(why);
  removals_.session_lost();
  holds_.session_lost(why);
  contentions_.session_lost(why);
}

// A first attempt that fails is not reported: its waiters get the reason.
void SessionLocks::broken(const Failure& why) {
  if (was_good_) connection_.broken(why);
}

void SessionLocks::warn_of_short_session() {
  const std::chrono::milliseconds granted = session_.granted_timeout();
  if (granted >= options_.session_timeout || std::exchange(warned_of_short_session_, true)) return;
  host_.warn({.name = "",
              .reason = {errc::unavailable, options_.endpoint() + ": the servers grant a session timeout of only " +
                                                util::to_text(granted) + " instead of " +
                                                util::to_text(options_.session_timeout) +
                                                " (maxSessionTimeout), so locks are lost sooner"}});
}

}  // namespace dlock::zookeeper
