#include "backends/memory/cleanups.hpp"

#include <algorithm>
#include <utility>

namespace dlock::memory {

void Cleanups::start(const std::string& name, const OwnerId& owner, std::chrono::nanoseconds lease, Stake stake) {
  if (connection_.dead()) return;  // the store has forgotten everything of this client
  const auto [entry, fresh] = entries_.try_emplace(owner, connection_.executor());
  if (!fresh) return heard_of(owner);
  entry->second.name = name;
  entry->second.lease = lease;
  entry->second.moot = stake == Stake::place ? TimePoint::max() : saturating_add(connection_.executor().now(), lease);
  ++unconfirmed_;
  release(owner);
}

void Cleanups::heard_of(const OwnerId& owner) {
  const auto found = entries_.find(owner);
  if (found == entries_.end() || !found->second.confirmed) return;
  found->second.confirmed = false;
  ++unconfirmed_;
  release(owner);
}

void Cleanups::finish(std::function<void()> done) {
  finished_ = std::move(done);
  report_if_finished();
}

void Cleanups::release(const OwnerId& owner) {
  const Clock& clock = connection_.clock();
  connection_.request(
      Operation::release, owner, std::pair(entries_.at(owner).name, owner),
      [&clock](MemoryStore& store, const auto& what) { return store.release(what.first, what.second, clock); },
      [this](const auto& what, const Result<bool>& released) {
        if (released.ok()) {
          confirmed(what.second);
        } else {
          failed(what.second);
        }
      });
}

void Cleanups::confirmed(const OwnerId& owner) {
  const auto found = entries_.find(owner);
  if (found == entries_.end() || found->second.confirmed) return;
  Entry& entry = found->second;
  entry.confirmed = true;
  entry.moot = saturating_add(connection_.executor().now(), entry.lease);
  entry.timer.arm(entry.moot, [this, owner] { forget(owner); });
  --unconfirmed_;
  report_if_finished();
}

void Cleanups::failed(const OwnerId& owner) {
  const auto found = entries_.find(owner);
  if (found == entries_.end() || found->second.confirmed) return;
  Entry& entry = found->second;
  const TimePoint now = connection_.executor().now();
  if (connection_.dead() || now >= entry.moot) return forget(owner);
  const TimePoint again = saturating_add(now, entry.backoff.next(connection_.executor()));
  entry.timer.arm(std::min(again, entry.moot), [this, owner] { release(owner); });
}

void Cleanups::forget(const OwnerId& owner) {
  const auto found = entries_.find(owner);
  if (found == entries_.end()) return;
  if (!found->second.confirmed) --unconfirmed_;
  entries_.erase(found);
  report_if_finished();
}

void Cleanups::report_if_finished() {
  if (!finished_ || (unconfirmed_ > 0 && !connection_.dead())) return;
  const auto finished = std::exchange(finished_, nullptr);
  finished();
}

}  // namespace dlock::memory
