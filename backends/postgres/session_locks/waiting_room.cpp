#include "backends/postgres/session_locks/waiting_room.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace dlock::postgres {

WaitingRoom::WaitingRoom(BackendHost& host, const Options& options, const Dialling& dialling, const AdvisorySql& sql,
                         WaitSlices slices, std::function<void()> when_quiet)
    : executor_(host.executor()),
      full_(dialling.full),
      when_quiet_(std::move(when_quiet)),
      pool_(executor_, dialling, Purpose{.word = "waiting", .session_lease = options.lease}, options.max_connections),
      common_{.host = host,
              .options = options,
              .sql = sql,
              .response_timeout = dialling.response_timeout,
              .slice = [this](MemberLock::Waiter& waiter) { return turns_.slice(static_cast<Waiter&>(waiter)); },
              .stays = [this](MemberLock::Waiter& waiter) { return turns_.stays(static_cast<Waiter&>(waiter)); },
              .over = [this](MemberLock& lock) { set_aside(lock); }},
      // Tries go over other connections.
      turns_(executor_, options.max_connections, Turns::Spare{}, slices, [this] {
        const std::size_t limit = makes_room() ? 0 : pool_.limit();
        return static_cast<std::int64_t>(limit) - static_cast<std::int64_t>(locks_.size() + over_.size());
      }) {}

WaitingRoom::~WaitingRoom() = default;

// The connections that locks are tried for are enough then.
bool WaitingRoom::makes_room() const {
  return full_ != nullptr && full_->makes_room();
}

// --- Coming and going ------------------------------------------------------------------------------------------------

std::string WaitingRoom::place_of(const LockKey& key) {
  return std::to_string(static_cast<int>(key.kind)) + ":" + key.parameter;
}

Failure WaitingRoom::why_no_connection() const {
  return makes_room() ? full_->why() : pool_.exhausted();
}

Turns::Place WaitingRoom::admit(Waiter& waiter) {
  const Turns::Place place = turns_.enter(place_of(waiter.key()), waiter);
  if (place == Turns::Place::inside) give_connection(waiter);
  return place;
}

void WaitingRoom::give_connection(Waiter& waiter) {
  auto lock = std::make_unique<MemberLock>(common_, waiter.request(), waiter.key(), waiter);
  auto member = pool_.take(lock->user());
  if (!member) return waiter.member_failed(Remedy::retry, pool_.exhausted());
  MemberLock& admitted = *lock;
  locks_.emplace(&admitted, std::move(lock));
  by_owner_.insert_or_assign(admitted.owner(), &admitted);
  waiter.admitted(admitted);
  admitted.begin(std::move(member));
}

// Its session may be just telling it something.
void WaitingRoom::set_aside(MemberLock& lock) {
  const auto found = locks_.find(&lock);
  if (found == locks_.end()) return;
  const auto owned = by_owner_.find(lock.owner());
  if (owned != by_owner_.end() && owned->second == &lock) by_owner_.erase(owned);
  over_.push_back(std::move(found->second));
  locks_.erase(found);
  if (over_.size() > 1) return;
  executor_.post(lifetime_.guard([this] { clear_away(); }));
}

void WaitingRoom::clear_away() {
  std::vector<LockKey> gone;
  for (auto& lock : std::exchange(over_, {})) {
    gone.push_back(lock->key());
    auto member = lock->take_member();
    lock.reset();
    if (member && !makes_room()) pool_.give_back(std::move(member));
  }
  turns_.room();
  // What was held here and was waited for, perhaps.
  for (const LockKey& key : gone) freed(key);
  if (quiet()) when_quiet_();
}

bool WaitingRoom::release(const OwnerId& owner, Backend::ReleaseHandler done) {
  const auto found = by_owner_.find(owner);
  return found != by_owner_.end() && found->second->release(std::move(done));
}

bool WaitingRoom::holds_any() const {
  return std::any_of(locks_.begin(), locks_.end(), [](const auto& item) { return item.second->holds(); });
}

}  // namespace dlock::postgres
