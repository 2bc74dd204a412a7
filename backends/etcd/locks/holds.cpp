#include "backends/etcd/locks/holds.hpp"

#include <utility>

namespace dlock::etcd {

namespace {

// A watch of the lock's own key costs two messages, and a read if the revision has changed meanwhile. Locks that are
// held for a moment do without.
constexpr std::chrono::milliseconds watch_after(200);
// After a failed read.
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

// The watch may begin too late to report a removal; it reports its own start, too, and told() reads the key.
void Holds::look(const OwnerId& owner, Hold& hold) {
  hold.watch = watches_.watch({hold.own.key}, false, [this, owner](std::int64_t revision) { told(owner, revision); });
}

// A member that lags behind may report old changes of the key.
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
