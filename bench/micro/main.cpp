// Benchmarks of the core and of the embedded backends; takes Google Benchmark's flags, and URLs of services to measure
// as well.
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <benchmark/benchmark.h>

#include "service.hpp"

namespace {

[[nodiscard]] bool built_with(std::string_view scheme) {
  const auto schemes = dlock::backends();
  return std::find(schemes.begin(), schemes.end(), scheme) != schemes.end();
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  char** const urls = std::stable_partition(
      argv + 1, argv + argc, [](std::string_view argument) { return argument.find("://") == std::string_view::npos; });
  if (benchmark::ReportUnrecognizedArguments(static_cast<int>(urls - argv), argv)) return 1;

  if (built_with("memory")) {
    bench::register_acquire_release(std::make_shared<bench::Service>("memory", "memory://"));
    bench::register_footprint();
    bench::register_keeper();
    bench::register_late_losses();
  }
  if (built_with("file")) {
    const auto directory = std::make_shared<bench::ScratchDirectory>();
    bench::register_acquire_release(std::make_shared<bench::Service>("file", "file://" + directory->path()));
  }
  for (const std::string url : std::span(urls, argv + argc)) {
    bench::register_acquire_release(std::make_shared<bench::Service>(url.substr(0, url.find(':')), url));
  }

  benchmark::RunSpecifiedBenchmarks();
  // The registered benchmarks own clients and a directory, which are to be gone before main() ends.
  benchmark::ClearRegisteredBenchmarks();
  benchmark::Shutdown();
  return 0;
}
