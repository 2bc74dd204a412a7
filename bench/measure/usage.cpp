#include "bench/measure/usage.hpp"

#include <malloc.h>
#include <sys/resource.h>

#include <cerrno>
#include <system_error>

namespace dlock::bench {

namespace {

std::chrono::nanoseconds duration_of(const timeval& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
}

}  // namespace

Usage usage() {
  rusage counted{};
  if (::getrusage(RUSAGE_SELF, &counted) != 0) throw std::system_error(errno, std::generic_category(), "getrusage");
  return {.processor_time = duration_of(counted.ru_utime) + duration_of(counted.ru_stime),
          .voluntary_switches = static_cast<std::uint64_t>(counted.ru_nvcsw),
          .involuntary_switches = static_cast<std::uint64_t>(counted.ru_nivcsw)};
}

double allocated_bytes() {
  const auto info = ::mallinfo2();
  return static_cast<double>(info.uordblks) + static_cast<double>(info.hblkhd);
}

}  // namespace dlock::bench
