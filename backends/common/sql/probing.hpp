// How TCP finds out that nothing gets through to the server any more.
#pragma once

#include <algorithm>
#include <chrono>

namespace dlock::sql {

// TCP probes an idle connection after `idle`, `count` times, `interval` apart. It waits for the acknowledgement of sent
// bytes for `unacknowledged`.
struct Probing {
  std::chrono::seconds idle{15};
  std::chrono::seconds interval{5};
  int count = 3;
  std::chrono::milliseconds unacknowledged{30000};
};

// Of Purpose::session_lease. If locks live in the session, probing takes at least its lease, so the server never ends a
// session on which the client still relies; and not much longer.
[[nodiscard]] inline Probing probing_for(std::chrono::nanoseconds session_lease) {
  using std::chrono::seconds;
  if (session_lease <= std::chrono::nanoseconds(0)) return {};
  const seconds quarter = std::max(seconds(1), std::chrono::ceil<seconds>(session_lease / 4));
  return {.idle = quarter,
          .interval = quarter,
          .count = 3,
          .unacknowledged = std::chrono::ceil<std::chrono::milliseconds>(session_lease)};
}

}  // namespace dlock::sql
