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

rusage usage_of_process() {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) throw std::system_error(errno, std::generic_category(), "getrusage");
  return usage;
}

}  // namespace

std::chrono::nanoseconds processor_time() {
  const rusage usage = usage_of_process();
  return duration_of(usage.ru_utime) + duration_of(usage.ru_stime);
}

ContextSwitches context_switches() {
  const rusage usage = usage_of_process();
  return {static_cast<std::uint64_t>(usage.ru_nvcsw), static_cast<std::uint64_t>(usage.ru_nivcsw)};
}

double allocated_bytes() {
  const auto info = ::mallinfo2();
  return static_cast<double>(info.uordblks) + static_cast<double>(info.hblkhd);
}

}  // namespace dlock::bench
