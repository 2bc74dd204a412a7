#include "backends/common/sql/observed_versions.hpp"

#include <algorithm>

#include <dlock/duration.hpp>

namespace dlock::sql {

using std::chrono::nanoseconds;

namespace {

constexpr std::size_t few = 10'000;
constexpr nanoseconds of_interest = std::chrono::minutes(10);

}  // namespace

nanoseconds ObservedVersions::note(const std::string& name, const ObservedVersion& seen, nanoseconds lease,
                                   TimePoint now) {
  if (seen_.size() >= room_) make_room(now);
  Entry& entry = seen_[name];
  if (entry.seen.owner != seen.owner || entry.seen.version != seen.version) {
    entry.seen = seen;
    entry.since = now;
  }
  entry.lease = lease;
  entry.last = now;
  return std::max(saturating_add(entry.since, lease) - now, nanoseconds(0));
}

ObservedVersion ObservedVersions::over(const std::string& name, TimePoint now) const {
  const auto found = seen_.find(name);
  if (found == seen_.end()) return {};
  const Entry& entry = found->second;
  return now >= saturating_add(entry.since, entry.lease) ? entry.seen : ObservedVersion{};
}

// Never drops an awaited lock, however many there are: its version would have to stay unchanged for one lease more.
void ObservedVersions::make_room(TimePoint now) {
  std::erase_if(seen_, [&](const auto& entry) { return now - entry.second.last > of_interest; });
  room_ = std::max(few, 2 * seen_.size());
}

}  // namespace dlock::sql
