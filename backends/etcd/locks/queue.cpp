#include "backends/etcd/locks/queue.hpp"

#include <utility>

#include "backends/common/for_each_still_in.hpp"
#include "backends/etcd/locks/keys.hpp"
#include "backends/etcd/locks/queue_contention.hpp"
#include "backends/etcd/wire/messages.hpp"

namespace dlock::etcd {

namespace {

// A key stays for as long as the session is kept alive, so it is removed until that is certain.
constexpr std::chrono::hours endless{24 * 365};
// Of requests that were given up.
constexpr std::size_t most_marks = 16;

}  // namespace

Queue::Queue(BackendHost& host, Client& client, Session& session, Watches& watches)
    : host_(host),
      client_(client),
      session_(session),
      watches_(watches),
      batches_(client),
      cleanup_(host.executor(), client.options().response_timeout, endless,
               [this](const Cleanup::Claim& claim, Cleanup::Reason, TimePoint deadline, Cleanup::Answer answer) {
                 remove(claim.name, claim.owner, deadline, std::move(answer));
               }),
      holds_(host, client, watches,
             [this](const HeldKey& held, const OwnerId& owner) { give_up(held.key, owner, held.created, 0); }) {}

Queue::~Queue() = default;

std::unique_ptr<Contention> Queue::contend(const LockRequest& request, GrantSink& sink) {
  const std::uint64_t id = ++next_id_;
  auto contention = std::make_unique<QueueContention>(*this, id, request, sink);
  contentions_.emplace(id, contention.get());
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
  created_[grant.owner] = held->created;
  Grant of_key = grant;
  of_key.name = std::move(held->key);
  cleanup_.release(of_key, std::move(done));
}

void Queue::give_up(const std::string& key, const OwnerId& owner, std::int64_t created, std::uint64_t doubtful) {
  if (!is_of_lease(key, session_.lease())) return;  // it is gone with another session, or goes
  if (created == 0 && doubtful == 0) return free(key);
  created_[owner] = created;
  if (doubtful != 0) doubtful_[owner] = doubtful;
  cleanup_.abandon({.name = key, .owner = owner}, session_.ttl(), false);
}

void Queue::remove(const std::string& key, const OwnerId& owner, TimePoint deadline, Cleanup::Answer answer) {
  const auto created = created_.find(owner);
  // That is certain already, and the key may be another's; or the session was closed.
  if (created == created_.end() || !is_of_lease(key, session_.lease())) return answer(false);
  const auto in_doubt = doubtful_.find(owner);
  const std::uint64_t doubtful = in_doubt == doubtful_.end() ? 0 : in_doubt->second;
  Transaction transaction;
  if (doubtful == 0) transaction.if_created({key}, created->second);
  transaction.remove({key});
  const std::int64_t lease = session_.lease();
  if (doubtful != 0) transaction.put(gone_key(client_.options(), lease, doubtful), "", lease);
  batches_.submit(
      transaction, {}, deadline,
      [this, key, owner, doubtful, lease, answer = std::move(answer)](const Result<TransactionAnswer>& said) {
        if (said.ok()) {
          doubtful_.erase(owner);
          if (created_.erase(owner) > 0 && doubtful == 0) free(key);
          if (doubtful != 0 && lease == session_.lease()) marked(doubtful);
          return answer(said.value().held && said.value().steps.front().removed > 0);
        }
        // The session has ended, and etcd removed the key with it.
        if (said.failure().code == errc::lost) return answer(false);
        answer(said.failure());
      });
}

void Queue::marked(std::uint64_t request) {
  marked_.insert(request);
  if (marked_.size() <= most_marks) return;
  const std::uint64_t last = *marked_.rbegin();
  const std::int64_t lease = session_.lease();
  const Options& options = client_.options();
  Transaction transaction;
  transaction.remove({gone_key(options, lease, 0), gone_key(options, lease, last)});
  // Those that it does not remove are removed together with later ones.
  batches_.submit(transaction, {}, client_.answer_by(), [](const Result<TransactionAnswer>&) {});
  marked_ = {last};
}

// --- The session -----------------------------------------------------------------------------------------------------

void Queue::session_ready() {
  trouble_ = {};
  common::for_each_still_in(contentions_, [](auto, QueueContention* each) { each->session_ready(); });
}

void Queue::session_suspended(const Failure& why) {
  trouble_ = why;
  common::for_each_still_in(contentions_, [&why](auto, QueueContention* each) { each->session_suspended(why); });
}

void Queue::session_lost(const Failure& why) {
  trouble_ = {errc::unavailable, why.detail};
  // Late requests name a lease that has ended.
  doubtful_.clear();
  marked_.clear();
  created_.clear();
  numbers_ = {};
  holds_.session_lost(why);
  common::for_each_still_in(contentions_, [](auto, QueueContention* each) { each->session_lost(); });
  batches_.fail_waiting({errc::lost, why.detail});
}

}  // namespace dlock::etcd
