// Benchmarks of the core and of the embedded backends; takes Google Benchmark's flags, and URLs of services to measure
// as well.
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <benchmark/benchmark.h>

#include "micro.hpp"
#include "torture/rig/scratch_directory.hpp"

namespace {

void register_client(const std::string& name, const std::string& url) {
  bench::register_acquire_release(name, std::make_shared<const dlock::Client>(dlock::connect(url)));
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  char** const urls = std::stable_partition(
      argv + 1, argv + argc, [](std::string_view argument) { return argument.find("://") == std::string_view::npos; });
  if (benchmark::ReportUnrecognizedArguments(static_cast<int>(urls - argv), argv)) return 1;

  const dlock::rig::ScratchDirectory directory;
  for (const std::string& scheme : dlock::backends()) {
    if (scheme == "memory") {
      register_client("memory", "memory://");
      bench::register_leases();
    }
    if (scheme == "file") register_client("file", "file://" + directory.path());
  }
  for (const std::string url : std::span(urls, argv + argc)) register_client(url.substr(0, url.find(':')), url);

  benchmark::RunSpecifiedBenchmarks();
  // The registered benchmarks own clients, which are to be gone before main() ends.
  benchmark::ClearRegisteredBenchmarks();
  benchmark::Shutdown();
  return 0;
}
