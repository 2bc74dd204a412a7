// Callers whose answers arrive together wake up before they ask again, and seldom do so in the same turn. If a query
// went out as soon as the first of them asks, the others would be in the next one, and two groups would take turns,
// each with a query, a round trip and a commit of its own. So a query may wait, for a part of a round trip, for as many
// callers as came back the last times, and not at all if none came back.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include <dlock/clock.hpp>

namespace dlock::sql {

// In tasks only.
class BatchWindow {
 public:
  // So many requests of a query that was sent then were answered together.
  void answered(std::size_t together, TimePoint sent, TimePoint now);
  // One more request arrives.
  void asked(TimePoint now);
  // Requests wait until then, unless more arrive. Empty: they wait no longer.
  [[nodiscard]] std::optional<TimePoint> waits_until(TimePoint now) const;

 private:
  TimePoint end_ = TimePoint::min();
  std::size_t answered_ = 0;
  std::size_t asked_ = 0;     // requests since then, until end_
  std::size_t expected_ = 0;  // requests until end_
  double share_ = 0;          // of the answered callers that came back, averaged
};

}  // namespace dlock::sql
