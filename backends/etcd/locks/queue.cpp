#include "backends/etcd/locks/queue.hpp"

#include <algorithm>
#include <utility>

#include "backends/etcd/locks/keys.hpp"
#include "backends/etcd/locks/queue_contention.hpp"
#include "backends/etcd/wire/messages.hpp"

namespace dlock::etcd {

namespace {

// A key lives as long as its session, so its removal is retried until it is certain.
constexpr std::chrono::hours endless{24 * 365};
// For requests that were given up.
constexpr std::size_t most_marks = 16;

}  // namespace

Queue::Queue(BackendHost& host, Client& client, Session& session, Watches& watches)
    : SessionWaiters(host.executor(), client.options().response_timeout),
      client_(client),
      session_(session),
      watches_(watches),
      batches_(client),
      cleanup_(host.executor(), client.options().response_timeout, endless,
               [this](const Cleanup::Claim& claim, Cleanup::Reason, TimePoint deadline, Cleanup::Answer answer) {
                 remove(claim.owner, deadline, std::move(answer));
               }),
      holds_(host, client, watches, [this](OwnKey key, const OwnerId& owner) { remove_later(std::move(key), owner); }) {
}

std::unique_ptr<Contention> Queue::contend(const LockRequest& request, GrantSink& sink) {
  auto contention = std::make_unique<QueueContention>(*this, request, sink);
  contention->start();
  return contention;
}

std::string Queue::new_key(const Place& place) {
  return key_of(place, session_.lease(), numbers_.take(place.own));
}

void Queue::free(const std::string& key) {
  numbers_.give_back(key.substr(0, key.rfind('/') + 1), key_number(key));
}

// --- What must go ----------------------------------------------------------------------------------------------------

void Queue::release(const Grant& grant, Backend::ReleaseHandler done) {
  auto held = holds_.take(grant.owner);
  if (!held) return done({.status = ReleaseOutcome::Status::not_owner});
  OwnKey& key = *held;
  leaving_[grant.owner] = std::move(key);
  cleanup_.release(grant, std::move(done));
}

void Queue::remove_later(OwnKey key, const OwnerId& owner) {
  if (!is_of_lease(key.key, session_.lease())) return;  // it is gone with its session, or will be
  if (!key.there() && key.unanswered == 0) return free(key.key);
  leaving_[owner] = std::move(key);
  cleanup_.abandon({.name = {}, .owner = owner}, session_.ttl(), false);
}

void Queue::remove(const OwnerId& owner, TimePoint deadline, Cleanup::Answer answer) {
  const auto found = leaving_.find(owner);
  // It is certainly gone, and the key may belong to a different acquire; or the session was closed.
  if (found == leaving_.end() || !is_of_lease(found->second.key, session_.lease())) return answer(false);
  const OwnKey& own = found->second;
  const std::int64_t lease = session_.lease();
  const std::uint64_t mark = own.unanswered > 0 ? own.request : 0;
  Transaction transaction;
  if (mark == 0) transaction.if_created({own.key}, own.created);
  transaction.remove({own.key});
  if (mark != 0) transaction.put(gone_key(client_.options(), lease, mark), "", lease);
  batches_.submit(transaction, {}, deadline,
                  [this, owner, mark, lease, answer = std::move(answer)](const Result<TransactionAnswer>& said) {
                    // The session has ended, and etcd removed the key with it.
                    if (!said.ok() && said.failure().code == errc::lost) return answer(false);
                    if (!said.ok()) return answer(said.failure());
                    const auto gone = leaving_.extract(owner);
                    if (gone && mark == 0) free(gone.mapped().key);
                    if (mark != 0 && lease == session_.lease()) marked(mark);
                    answer(said.value().held && said.value().steps.front().removed > 0);
                  });
}

void Queue::marked(std::uint64_t request) {
  last_mark_ = std::max(last_mark_, request);
  if (++marks_ <= most_marks) return;
  const std::int64_t lease = session_.lease();
  const Options& options = client_.options();
  Transaction transaction;
  transaction.remove({gone_key(options, lease, 0), gone_key(options, lease, last_mark_)});
  // A mark that this does not remove is removed by a later call.
  batches_.submit(transaction, {}, client_.answer_by(), [](const Result<TransactionAnswer>&) {});
  marks_ = 1;
}

void Queue::session_lost(const Failure& why) {
  // Late requests name a lease that has ended.
  leaving_.clear();
  marks_ = 0;
  numbers_ = {};
  holds_.session_lost(why);
  SessionWaiters::session_lost(why);
  batches_.fail_waiting({errc::lost, why.detail});
}

}  // namespace dlock::etcd
