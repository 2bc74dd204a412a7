#include "bench/environment.hpp"

#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include <fstream>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "cmake/revision.hpp"

namespace dlock::bench {

namespace {

std::string processor_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const auto value = line.find(": ");
    return value == std::string::npos ? std::string() : line.substr(value + 2);
  }
  return {};
}

}  // namespace

bool optimised() noexcept {
#ifdef __OPTIMIZE__
  return true;
#else
  return false;
#endif
}

Settings environment() {
  Settings settings;
  const auto add = [&](const char* name, std::string value) {
    if (!value.empty()) settings.emplace_back(name, std::move(value));
  };
  add("processor", processor_model());
  add("processors", std::to_string(std::thread::hardware_concurrency()));
  struct sysinfo memory {};
  if (::sysinfo(&memory) == 0) {
    add("memory", fmt::format("{:.1f} GiB", static_cast<double>(memory.totalram) * memory.mem_unit / (1U << 30U)));
  }
  struct utsname system {};
  if (::uname(&system) == 0) add("kernel", fmt::format("{} {} {}", system.sysname, system.release, system.machine));
#ifdef __clang__
  add("compiler", "Clang " __clang_version__);
#else
  add("compiler", "GCC " __VERSION__);
#endif
  add("optimised", optimised() ? "yes" : "no");
  add("dlock", build_version());
  add("revision", build_revision());
  return settings;
}

}  // namespace dlock::bench
