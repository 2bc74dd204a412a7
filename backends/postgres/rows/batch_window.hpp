// Those whose answers come together have to wake up before they ask again, and seldom do so in the same turn. A query
// that goes out as soon as the first of them asks leaves the others to the one after it, and then two groups take
// turns, each with a query, a round trip and a commit of its own. So a query may wait for a part of a round trip for as
// many as came back the last times, and not at all where none come back.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include <dlock/clock.hpp>

namespace dlock::postgres {

// In tasks only.
class BatchWindow {
 public:
  // So many were answered together, of a query that was sent then.
  void answered(std::size_t together, TimePoint sent, TimePoint now);
  // One more asks.
  void asked(TimePoint now);
  // What has been asked waits until then, unless more ask. Empty: no longer.
  [[nodiscard]] std::optional<TimePoint> waits_until(TimePoint now) const;

 private:
  TimePoint end_ = TimePoint::min();
  std::size_t answered_ = 0;
  std::size_t asked_ = 0;     // since then, until the end
  std::size_t expected_ = 0;  // of them
  double share_ = 0;          // of those who were answered, of late
};

}  // namespace dlock::postgres
