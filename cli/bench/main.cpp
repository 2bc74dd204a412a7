// dlock-bench, which "dlock bench" starts: measures lock services, or compares measurements.
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/environment.hpp"
#include "bench/report/report.hpp"
#include "bench/session.hpp"
#include "cli/application.hpp"
#include "cli/bench/progress.hpp"
#include "cli/completion.hpp"
#include "cli/exit_code.hpp"
#include "cli/help.hpp"
#include "cli/inherited.hpp"
#include "cli/interruption.hpp"
#include "cli/output.hpp"
#include "cli/program.hpp"
#include "cli/report_file.hpp"
#include "cli/usage_error.hpp"

namespace dlock::cli {

namespace {

struct BenchArguments {
  std::vector<std::string> urls;       // empty: all that are reachable
  std::vector<std::string> scenarios;  // empty: all
  bool quick = false;
  std::optional<double> rate;
  std::string html = "dlock-bench.html";
  std::string json;                  // empty: none
  std::vector<std::string> compare;  // two files, or none
};

class BenchCommandLine {
 public:
  BenchCommandLine() {
    set_up(app);
    app.footer(help_footer("bench"));
    // --compare excludes the options of a measurement.
    CLI::Option* compare = app.add_option("--compare", arguments.compare,
                                          "Measure nothing; show what changed from one --json file to another")
                               ->option_text("OLD NEW")
                               ->expected(2);
    app.add_option("--url", arguments.urls, "A lock service; may be repeated (default: all that can be reached)")
        ->type_name("URL")
        ->expected(1)
        ->take_all()
        ->excludes(compare);
    app.add_option("--scenario", arguments.scenarios, "Measure only this; may be repeated (default: all)")
        ->type_name("NAME")
        ->expected(1)
        ->take_all()
        ->check(word_check(bench::scenario_names()))
        ->excludes(compare);
    app.add_flag("--quick", arguments.quick, "A short run, for a first impression")->excludes(compare);
    app.add_option("--rate", arguments.rate,
                   "Start N acquires per second, whether or not earlier ones have been answered")
        ->type_name("N")
        ->check(positive_check())
        ->excludes(compare);
    app.add_option("--html", arguments.html, "Write the report to this file (default dlock-bench.html)")
        ->type_name("FILE")
        ->excludes(compare);
    app.add_option("--json", arguments.json, "Write all figures to this file")->type_name("FILE")->excludes(compare);
  }

  CLI::App app{"Measure and compare lock services", "dlock bench"};
  BenchArguments arguments;
};

constexpr int success = static_cast<int>(ExitCode::ok);
constexpr int something_is_worse = static_cast<int>(ExitCode::findings);

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file.is_open() || file.bad()) {
    throw UsageError(fmt::format("--compare: cannot read {}: {}", path, std::strerror(errno)));
  }
  return text;
}

bench::Report read_report(const std::string& path) {
  try {
    return bench::from_json(read_file(path));
  } catch (const UsageError&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw UsageError(fmt::format("--compare: {}: {}", path, error.what()));
  }
}

int compare_files(const std::vector<std::string>& paths) {
  const bench::Report before = read_report(paths.at(0));
  const bench::Report after = read_report(paths.at(1));
  const bench::Comparison comparison = bench::compare(before, after);
  print_lines(comparison.text);
  return comparison.slower ? something_is_worse : success;
}

bench::Plan make_plan(const BenchArguments& arguments) {
  bench::Plan plan = arguments.quick ? bench::quick_plan() : bench::full_plan();
  plan.urls = arguments.urls;
  plan.scenarios = arguments.scenarios;
  plan.rate = arguments.rate;
  plan.dlock_program = path_of("dlock");
  plan.command = "dlock bench";
  if (arguments.quick) plan.command += " --quick";
  for (const std::string& each : arguments.scenarios) plan.command += " --scenario " + each;
  if (arguments.rate) plan.command += fmt::format(" --rate {}", *arguments.rate);
  return plan;
}

int measure(const BenchArguments& wanted, Inherited& inherited) {
  if (!bench::optimised()) say("warning: this dlock was built without optimisation; its figures mean nothing");
  std::optional<ReportFile> json;
  if (!wanted.json.empty()) json.emplace("--json", wanted.json);
  ReportFile html("--html", wanted.html);
  inherited.take_over_signals();
  Interruption interruption;
  const bench::Report report = [&] {
    BenchProgress progress;
    return bench::run_benchmarks(make_plan(wanted), progress, interruption.stop());
  }();
  if (json) json->write(bench::to_json(report));
  html.write(bench::to_html(report));
  print_lines(bench::to_text(report) + fmt::format("\nThe report is in {}.\n", wanted.html));
  if (interruption.signal() != 0) return signalled(interruption.signal());
  return report.measurements.empty() ? static_cast<int>(ExitCode::unavailable) : success;
}

int bench_main(const std::vector<std::string>& words, Inherited& inherited) {
  BenchCommandLine line;
  if (const auto status = answer_or_parse(line.app, words)) return *status;
  return line.arguments.compare.empty() ? measure(line.arguments, inherited) : compare_files(line.arguments.compare);
}

}  // namespace

}  // namespace dlock::cli

int main(int argc, char** argv) {
  return dlock::cli::run_program(argc, argv, &dlock::cli::bench_main);
}
