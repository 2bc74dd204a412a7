// dlock bench: measures lock services, or compares what was measured.
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "bench/environment.hpp"
#include "bench/report/report.hpp"
#include "bench/session.hpp"
#include "cli/bench_progress.hpp"
#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/interruption.hpp"
#include "cli/output.hpp"
#include "cli/report_file.hpp"

namespace dlock::cli {

namespace {

constexpr int success = static_cast<int>(ExitCode::ok);
constexpr const char* usual_report = "dlock-bench.html";
constexpr int something_is_worse = static_cast<int>(ExitCode::findings);

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || !text) throw UsageError(fmt::format("--compare: cannot read {}: {}", path, std::strerror(errno)));
  return std::move(text).str();
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

std::string own_program() {
  std::error_code ec;
  return std::filesystem::read_symlink("/proc/self/exe", ec).string();
}

bench::Plan make_plan(const BenchArguments& arguments) {
  bench::Plan plan = arguments.quick ? bench::quick_plan() : bench::full_plan();
  plan.urls = arguments.urls;
  plan.scenarios = arguments.scenarios;
  plan.rate = arguments.rate;
  plan.dlock_program = own_program();
  plan.command = "dlock bench";
  if (arguments.quick) plan.command += " --quick";
  if (arguments.rate) plan.command += fmt::format(" --rate {}", *arguments.rate);
  return plan;
}

}  // namespace

int bench_command(const Arguments& arguments, Inherited& inherited) {
  const BenchArguments& wanted = arguments.bench;
  if (!wanted.compare.empty()) return compare_files(wanted.compare);
  if (!bench::optimised()) say("warning: this dlock was built without optimisation; its figures mean nothing");
  std::optional<ReportFile> json;
  if (!wanted.json.empty()) json.emplace("--json", wanted.json);
  const std::string html_path = wanted.html.empty() ? usual_report : wanted.html;
  ReportFile html("--html", html_path);
  inherited.take_over_signals();
  Interruption interruption;
  const bench::Report report = [&] {
    BenchProgress progress;
    return bench::run_benchmarks(make_plan(wanted), progress, interruption.stop());
  }();
  if (json) json->write(bench::to_json(report));
  html.write(bench::to_html(report));
  print_lines(bench::to_text(report) + fmt::format("\nThe report is in {}.\n", html_path));
  if (interruption.signal() != 0) return signalled(interruption.signal());
  return report.measurements.empty() ? static_cast<int>(ExitCode::unavailable) : success;
}

}  // namespace dlock::cli
