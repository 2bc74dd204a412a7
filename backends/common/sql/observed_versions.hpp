// strategy=optimistic: for how long the versions of locks that others hold have stood still, by our own clock. The idea
// is that of Amazon's DynamoDB lock client: a lease has expired when it was not renewed for as long as it was to last.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <unordered_map>

#include <dlock/clock.hpp>

#include "backends/common/sql/row_batch.hpp"

namespace dlock::sql {

// In tasks only.
class ObservedVersions {
 public:
  // An answer that has arrived now shows the lock held. Returns for how long it must still stay unchanged.
  [[nodiscard]] std::chrono::nanoseconds note(const std::string& name, const ObservedVersion& seen,
                                              std::chrono::nanoseconds lease, TimePoint now);
  // The version that stood still for long enough to be taken over; empty if there is none.
  [[nodiscard]] ObservedVersion over(const std::string& name, TimePoint now) const;
  void forget(const std::string& name) { seen_.erase(name); }

 private:
  struct Entry {
    ObservedVersion seen;
    std::chrono::nanoseconds lease{};
    TimePoint since;
    TimePoint last;
  };

  void make_room(TimePoint now);

  std::unordered_map<std::string, Entry> seen_;
  std::size_t room_ = 0;  // at this size, entries that were not asked about for long are dropped
};

}  // namespace dlock::sql
