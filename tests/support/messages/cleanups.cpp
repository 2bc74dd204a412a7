#include "tests/support/messages/cleanups.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace dlock::messages {

void Cleanups::start(LockKind kind, const std::string& name, const OwnerId& owner, std::chrono::nanoseconds lease,
                     Stake stake) {
  const TimePoint now = connection_.executor().now();
  start_until(kind, name, owner, stake == Stake::place ? TimePoint::max() : saturating_add(now, lease));
}

void Cleanups::heard_of(LockKind kind, const std::string& name, const OwnerId& owner) {
  if (!kept_.contains(owner)) start_until(kind, name, owner, TimePoint::max());
}

void Cleanups::start_until(LockKind kind, const std::string& name, const OwnerId& owner, TimePoint moot) {
  if (connection_.dead()) return;  // the store has forgotten everything of this client
  const auto [found, fresh] = entries_.try_emplace(owner, connection_.executor());
  Entry& entry = found->second;
  if (!fresh) {
    entry.moot = std::max(entry.moot, moot);
    entry.again = true;  // one that is still to be sent will do
    return;
  }
  entry.kind = kind;
  entry.name = name;
  entry.moot = moot;
  release(owner);
}

void Cleanups::finish(std::function<void()> done) {
  finished_ = std::move(done);
  report_if_finished();
}

void Cleanups::release(const OwnerId& owner) {
  const Clock& clock = connection_.clock();
  Entry& entry = entries_.at(owner);
  entry.again = false;
  connection_.request(
      Operation::release, owner, std::tuple(entry.kind, entry.name, owner),
      [&clock](memory::MemoryStore& store, const auto& what) {
        return store.release(std::get<LockKind>(what), std::get<std::string>(what), std::get<OwnerId>(what), clock);
      },
      [this](const auto& what, const Result<bool>& released) {
        if (released.ok()) {
          confirmed(std::get<OwnerId>(what));
        } else {
          failed(std::get<OwnerId>(what));
        }
      });
}

void Cleanups::confirmed(const OwnerId& owner) {
  if (entries_.at(owner).again) return release(owner);
  forget(owner);
}

void Cleanups::failed(const OwnerId& owner) {
  Entry& entry = entries_.at(owner);
  const TimePoint now = connection_.executor().now();
  if (connection_.dead() || now >= entry.moot) return forget(owner);
  const TimePoint again = saturating_add(now, entry.backoff.next(connection_.executor()));
  entry.timer.arm(std::min(again, entry.moot), [this, owner] { release(owner); });
}

void Cleanups::forget(const OwnerId& owner) {
  entries_.erase(owner);
  report_if_finished();
}

void Cleanups::report_if_finished() {
  if (!finished_ || (!entries_.empty() && !connection_.dead())) return;
  const auto finished = std::exchange(finished_, nullptr);
  finished();
}

}  // namespace dlock::messages
