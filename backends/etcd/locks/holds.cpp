#include "backends/etcd/locks/holds.hpp"

#include <utility>

namespace dlock::etcd {

namespace {

// A watch of our own key costs two messages, and a look where the revision has changed meanwhile; a lock that is held
// for a moment needs none.
constexpr std::chrono::milliseconds watch_after(200);
// After a look that failed.
constexpr std::chrono::milliseconds retry_after(500);

}  // namespace

Holds::Holds(BackendHost& host, Client& client, Watches& watches, Remove remove)
    : SessionHolds(host, "etcd"), client_(client), watches_(watches), remove_(std::move(remove)) {}

Holds::~Holds() = default;

void Holds::add(const Grant& grant, OwnKey key) {
  const std::int64_t created = key.created;
  SessionHolds::add(grant, {std::move(key), created});
  look_later(grant.owner, watch_after);
}

// By a watch, which may begin too late to tell that it has gone.
void Holds::look(const OwnerId& owner, Hold& hold) {
  hold.watch = watches_.watch({hold.own.key}, false, [this, owner](std::int64_t revision) { told(owner, revision); });
}

// A member that lags behind reports earlier keys of that name, too.
void Holds::told(const OwnerId& owner, std::int64_t revision) {
  const Hold* const hold = find(owner);
  if (hold == nullptr || revision <= hold->own.seen) return;
  client_.call(Transaction().read({.range = {hold->own.key}, .keys_only = true}), client_.answer_by(),
               lifetime_.guard([this, owner](const Result<TransactionAnswer>& answer) { read_key(owner, answer); }));
}

void Holds::read_key(const OwnerId& owner, const Result<TransactionAnswer>& answer) {
  Hold* const hold = find(owner);
  if (hold == nullptr) return;
  if (!answer.ok()) return look_later(owner, retry_after);
  const auto& keys = answer.value().steps.front().keys;
  if (keys.empty() || keys.front().created != hold->own.created) {
    return lose(owner, "the key of " + called(*hold) + ", " + util::quoted(hold->own.key) + ", was removed");
  }
  hold->own.seen = answer.value().header.revision;
}

}  // namespace dlock::etcd
