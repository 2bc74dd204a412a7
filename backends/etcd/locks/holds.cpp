#include "backends/etcd/locks/holds.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "util/names.hpp"

namespace dlock::etcd {

namespace {

// A watch of our own key costs two messages, and a look where the revision has changed meanwhile; a lock that is held
// for a moment needs none.
constexpr std::chrono::milliseconds watch_after(200);
// After a look that failed.
constexpr std::chrono::milliseconds retry_after(500);

}  // namespace

struct Holds::Hold {
  std::string name;
  Space space;
  std::string key;
  std::int64_t created;
  TimePoint valid_until;
  std::int64_t seen = created;  // the revision in which it was there
  std::unique_ptr<Watches::Interest> watch = nullptr;
  std::unique_ptr<Timer> retry = nullptr;
};

std::string Holds::called(const Hold& hold) {
  return std::string(to_string(hold.space)) + " " + util::quoted(hold.name);
}

Holds::Holds(BackendHost& host, Client& client, Watches& watches, Remove remove)
    : host_(host), client_(client), watches_(watches), remove_(std::move(remove)), timer_(host.executor()) {}

Holds::~Holds() = default;

Holds::Hold* Holds::find(const OwnerId& owner) const {
  const auto found = holds_.find(owner);
  return found == holds_.end() ? nullptr : found->second.get();
}

void Holds::add(const Grant& grant, std::string key) {
  holds_.insert_or_assign(
      grant.owner, std::make_unique<Hold>(Hold{grant.name, grant.space, std::move(key),
                                               static_cast<std::int64_t>(grant.token.value()), grant.valid_until}));
  watch_later(grant.owner);
}

std::optional<std::string> Holds::take(const OwnerId& owner) {
  const auto found = holds_.extract(owner);
  if (!found) return std::nullopt;
  return std::move(found.mapped()->key);
}

// --- The session -----------------------------------------------------------------------------------------------------

void Holds::session_alive(TimePoint valid_until) {
  const TimePoint now = host_.executor().now();
  std::vector<OwnerId> owners;  // the host may release one while it is told
  owners.reserve(holds_.size());
  for (const auto& [owner, hold] : holds_) owners.push_back(owner);
  for (const OwnerId& owner : owners) {
    Hold* const hold = find(owner);
    if (hold == nullptr) continue;
    if (!may_be_over(hold->valid_until, now)) {
      hold->valid_until = std::max(hold->valid_until, valid_until);
      host_.extended(owner, hold->valid_until);
      continue;
    }
    // Its holder may have been told already that it is over.
    lose(owner, {errc::lost, "etcd was not heard of before the lease of " + called(*hold) + " ran out"});
  }
}

void Holds::session_lost(const Failure& why) {
  due_.clear();
  timer_.disarm();
  for (auto& [owner, hold] : std::exchange(holds_, {})) {
    host_.lost(owner, {errc::lost, "the session that held " + called(*hold) + " is lost: " + why.detail});
  }
}

// --- Our own keys ----------------------------------------------------------------------------------------------------

void Holds::watch_later(const OwnerId& owner) {
  due_.push_back({saturating_add(host_.executor().now(), watch_after), owner});
  if (!timer_.armed()) timer_.arm(due_.front().at, [this] { watch_due(); });
}

void Holds::watch_due() {
  const TimePoint now = host_.executor().now();
  for (; !due_.empty() && due_.front().at <= now; due_.pop_front()) {
    const OwnerId owner = due_.front().owner;
    if (Hold* const hold = find(owner)) watch(owner, *hold);
  }
  // Most of those that are due later are released by then.
  while (!due_.empty() && find(due_.front().owner) == nullptr) due_.pop_front();
  if (!due_.empty()) timer_.arm(due_.front().at, [this] { watch_due(); });
}

void Holds::watch(const OwnerId& owner, Hold& hold) {
  hold.watch = watches_.watch({hold.key}, false, [this, owner](Watches::News news, std::int64_t revision) {
    Hold* const held = find(owner);
    if (held == nullptr || (news == Watches::News::standing && revision <= held->seen)) return;
    if (news == Watches::News::over) held->watch.reset();
    // Also after an event: a member that lags behind tells of earlier keys of that name.
    look(owner);
  });
}

void Holds::look(const OwnerId& owner) {
  const Hold* const hold = find(owner);
  if (hold == nullptr) return;
  client_.call(method_transaction, Transaction().read({.range = {hold->key}, .keys_only = true}).request(),
               client_.answer_by(),
               lifetime_.guard([this, owner](const Result<std::string>& answer, TimePoint) { looked(owner, answer); }));
}

void Holds::looked(const OwnerId& owner, const Result<std::string>& answer) {
  Hold* const hold = find(owner);
  if (hold == nullptr) return;
  const auto read = answer.ok() ? read_transaction(answer.value(), {1}) : Result<TransactionAnswer>(answer.failure());
  if (!read.ok()) {
    hold->watch.reset();
    hold->retry = std::make_unique<Timer>(host_.executor());
    return hold->retry->arm(saturating_add(host_.executor().now(), retry_after), [this, owner] { look(owner); });
  }
  const auto& keys = read.value().steps.front().keys;
  if (!keys.empty() && keys.front().created == hold->created) {
    hold->seen = read.value().header.revision;
    if (!hold->watch) watch(owner, *hold);
    return;
  }
  lose(owner, {errc::lost, "somebody removed the key " + util::quoted(hold->key) + " of " + called(*hold)});
}

void Holds::lose(const OwnerId& owner, Failure why) {
  if (const auto hold = holds_.extract(owner)) {
    // Its key must not stay, nor come again, with nobody to release it.
    remove_(hold.mapped()->key, owner, hold.mapped()->created);
  }
  host_.lost(owner, std::move(why));
}

}  // namespace dlock::etcd
