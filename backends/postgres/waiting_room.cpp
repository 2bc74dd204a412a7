#include "backends/postgres/waiting_room.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <dlock/duration.hpp>

#include "util/backoff.hpp"

namespace dlock::postgres {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds poll_min(500);
constexpr milliseconds poll_max(1000);

}  // namespace

WaitingRoom::WaitingRoom(BackendHost& host, const Options& options, const Dialling& dialling, const AdvisorySql& sql,
                         WaitSlices slices, std::function<void()> when_quiet)
    : executor_(host.executor()),
      when_quiet_(std::move(when_quiet)),
      pool_(executor_, dialling, Purpose{.word = "waiting", .session_lease = options.lease}, options.max_connections),
      common_{.host = host,
              .options = options,
              .sql = sql,
              .response_timeout = dialling.response_timeout,
              .slices = slices,
              .over = [this](MemberLock& lock) { set_aside(lock); }},
      poll_timer_(executor_) {}

WaitingRoom::~WaitingRoom() = default;

// --- Coming and going ------------------------------------------------------------------------------------------------

bool WaitingRoom::admit(Guest& guest) {
  if (queue_.empty() && seat(guest)) return true;
  queue_.push_back(&guest);
  if (!poll_timer_.armed()) poll_later();
  return false;
}

void WaitingRoom::leave(Guest& guest) {
  (void)std::erase(queue_, &guest);
}

bool WaitingRoom::seat(Guest& guest) {
  auto lock = std::make_unique<MemberLock>(common_, guest.request(), guest.key(), guest);
  auto member = pool_.take(lock->user());
  if (!member) return false;
  MemberLock& seated = *lock;
  locks_.emplace(&seated, std::move(lock));
  by_owner_.insert_or_assign(seated.owner(), &seated);
  guest.seated(seated);
  seated.begin(std::move(member));
  return true;
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
  executor_.post([this, alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired()) clear_away();
  });
}

void WaitingRoom::clear_away() {
  for (auto& lock : std::exchange(over_, {})) {
    auto member = lock->take_member();
    lock.reset();
    if (member) pool_.give_back(std::move(member));
  }
  while (!queue_.empty()) {
    Guest& guest = *queue_.front();
    queue_.pop_front();
    if (seat(guest)) continue;
    queue_.push_front(&guest);
    break;
  }
  if (quiet()) when_quiet_();
}

bool WaitingRoom::release(const OwnerId& owner, Backend::ReleaseHandler done) {
  const auto found = by_owner_.find(owner);
  return found != by_owner_.end() && found->second->release(std::move(done));
}

// --- Those in the queue ----------------------------------------------------------------------------------------------

void WaitingRoom::freed(const LockKey& key) {
  const auto first =
      std::find_if(queue_.begin(), queue_.end(), [&](const Guest* guest) { return guest->key() == key; });
  if (first != queue_.end()) (*first)->worth_a_try();
}

void WaitingRoom::poll_later() {
  poll_timer_.arm(saturating_add(executor_.now(), util::between(poll_min, poll_max, executor_)), [this] { poll(); });
}

// One for each lock, the one that has waited longest.
void WaitingRoom::poll() {
  std::set<LockKey> seen;
  std::vector<Guest*> first;
  for (Guest* const guest : queue_) {
    if (seen.insert(guest->key()).second) first.push_back(guest);
  }
  // None of them goes while they are told: their tries are answered later.
  for (Guest* const guest : first) guest->worth_a_try();
  if (!queue_.empty()) poll_later();
}

}  // namespace dlock::postgres
