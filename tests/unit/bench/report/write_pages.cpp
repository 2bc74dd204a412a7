// write_pages DIRECTORY: pages of "dlock bench" for tests/browser/check_report. With many services; and with few data,
// of a quick run over the embedded backends.
#include <fstream>
#include <iterator>
#include <string>

#include "bench/report/figures.hpp"
#include "bench/report/report.hpp"

namespace {

using namespace dlock::bench;

// Each service four times.
Report many_services(const Report& golden) {
  Report report = golden;
  for (const char* suffix : {" (2)", " (3)", " (4)"}) {
    for (ServiceInfo each : golden.services) {
      each.label += suffix;
      report.services.push_back(std::move(each));
    }
    for (Measurement each : golden.measurements) {
      each.service += suffix;
      report.measurements.push_back(std::move(each));
    }
  }
  return report;
}

Report few_data(Report report) {
  report.quick = true;
  const auto is_embedded = [](const std::string& label) { return label == "memory queue" || label == "file"; };
  std::erase_if(report.services, [&](const ServiceInfo& each) { return !is_embedded(each.label); });
  std::erase_if(report.measurements, [&](const Measurement& each) {
    return !is_embedded(each.service) || each.parameters.contains(parameter::held);
  });
  return report;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  const std::string directory = argv[1];
  std::ifstream file(DLOCK_SOURCE_DIR "/tests/unit/bench/report/golden.json");
  const Report golden = from_json(std::string(std::istreambuf_iterator<char>(file), {}));
  std::ofstream full(directory + "/full.html");
  full << to_html(many_services(golden));
  std::ofstream few(directory + "/few.html");
  few << to_html(few_data(golden));
  return full.flush() && few.flush() ? 0 : 1;
}
