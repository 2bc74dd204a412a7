#include "backends/postgres/standstill.hpp"

#include <algorithm>

#include <dlock/duration.hpp>

namespace dlock::postgres {

using std::chrono::nanoseconds;

namespace {

constexpr std::size_t few = 10'000;
constexpr nanoseconds of_interest = std::chrono::minutes(10);

}  // namespace

nanoseconds Standstill::note(const std::string& name, const Sighting& sighting, nanoseconds lease, TimePoint now) {
  if (seen_.size() >= room_) make_room(now);
  Entry& entry = seen_[name];
  if (entry.sighting.owner != sighting.owner || entry.sighting.version != sighting.version) {
    entry.sighting = sighting;
    entry.since = now;
  }
  entry.lease = lease;
  entry.last = now;
  return std::max(saturating_add(entry.since, lease) - now, nanoseconds(0));
}

Sighting Standstill::over(const std::string& name, TimePoint now) const {
  const auto found = seen_.find(name);
  if (found == seen_.end()) return {};
  const Entry& entry = found->second;
  return now >= saturating_add(entry.since, entry.lease) ? entry.sighting : Sighting{};
}

// Never what somebody waits for, however much that is: what is forgotten has to be looked at for one lease more.
void Standstill::make_room(TimePoint now) {
  std::erase_if(seen_, [&](const auto& entry) { return now - entry.second.last > of_interest; });
  room_ = std::max(few, 2 * seen_.size());
}

}  // namespace dlock::postgres
