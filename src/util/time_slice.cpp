#include "util/time_slice.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace dlock::util {

namespace {

constexpr std::uint64_t shortest = 100'000;  // nanoseconds; the kernel's own limit

// The argument of sched_setattr(2), which older C libraries do not declare.
struct Attributes {
  std::uint32_t size = 0;
  std::uint32_t policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0;
  std::uint64_t deadline = 0;
  std::uint64_t period = 0;
};

}  // namespace

void ask_for_short_time_slices() noexcept {
  Attributes attributes;
  // A thread that may not change its time slice, or has another scheduling policy, stays as it is.
  if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;
  attributes.runtime = shortest;
  (void)::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace dlock::util
