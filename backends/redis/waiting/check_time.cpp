#include "backends/redis/waiting/check_time.hpp"

#include <algorithm>

#include <dlock/spi/backoff.hpp>

#include "backends/redis/timing.hpp"

namespace dlock::redis {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

TimePoint time_to_check(const AcquireAnswer& answer, const CheckBasis& basis, Executor& executor) {
  const TimePoint now = executor.now();
  const auto rank = static_cast<nanoseconds::rep>(std::min<std::uint64_t>(answer.rank.value_or(0), 1000));
  const nanoseconds behind = head_poll * rank;
  const nanoseconds longest = basis.reachable ? longest_poll : longest_blind_poll;
  const bool rarely = basis.reachable && !basis.foreign_lockers;
  const nanoseconds poll = rarely ? longest : std::min<nanoseconds>(head_poll + behind, longest);
  TimePoint check = saturating_add(now, random_between(poll * 3 / 4, poll, executor));
  if (rarely) check = std::max(now, TimePoint(check.time_since_epoch() / poll_beat * poll_beat));
  if (!answer.free_in) return check;
  // A lock that expires publishes no message. The waiter that watches it checks first, the others later the further
  // back they are. If the lock is free, but dead waiters are in front, the next request removes more of them.
  const bool watches = rank == 0 || basis.watches_holder || answer.more;
  const nanoseconds free_in = std::min<nanoseconds>(*answer.free_in, longest_poll);
  return std::min(check, saturating_add(now, just_after(watches ? free_in : free_in + behind, executor)));
}

nanoseconds just_after(nanoseconds end, Executor& executor) {
  return std::min<nanoseconds>(end, longest_poll) + random_between(milliseconds(1), milliseconds(3), executor);
}

}  // namespace dlock::redis
