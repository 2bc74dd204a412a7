// strategy=optimistic: how long the versions of locks that others hold have been unchanged, by this client's clock. As
// in Amazon's DynamoDB lock client, a lease has expired once it was not renewed for its whole length.
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
  // The version that was unchanged for long enough to be taken over; empty if there is none.
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
