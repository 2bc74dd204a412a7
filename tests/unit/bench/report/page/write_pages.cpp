// write_pages DIRECTORY: pages of "dlock bench" for tests/browser/check_report. With full data, and with few: a quick
// run over the embedded backends.
#include <fstream>
#include <string>

#include "bench/report/figures.hpp"
#include "bench/report/report.hpp"
#include "tests/unit/bench/report/synthetic_report.hpp"

namespace {

dlock::bench::Report few_data() {
  using namespace dlock::bench;
  Report report = without_scenario(without_scenario(synthetic_report(), scenario::holding), scenario::mix);
  report.quick = true;
  report.command = "dlock bench --quick";
  report.problems.clear();
  const auto embedded = [](const std::string& service) {
    return service.starts_with("memory") || service.starts_with("file");
  };
  std::erase_if(report.services, [&](const ServiceInfo& each) { return !embedded(each.label); });
  std::erase_if(report.measurements, [&](const Measurement& each) { return !embedded(each.service); });
  return report;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  const std::string directory = argv[1];
  std::ofstream full(directory + "/full.html");
  full << to_html(dlock::bench::synthetic_report());
  std::ofstream few(directory + "/few.html");
  few << to_html(few_data());
  return full.flush() && few.flush() ? 0 : 1;
}
