#include "suite/report.hpp"

#include <iostream>
#include <string_view>

#include <dlock/conformance/suite.hpp>

namespace dlock::conformance {

namespace {

constexpr std::string_view not_applicable_prefix = "not applicable: ";
constexpr std::string_view untested_prefix = "untested: ";

std::string_view without(std::string_view text, std::string_view prefix) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

// The message of a skip without the line feed and location that GoogleTest may add.
std::string first_line(std::string_view text) {
  const auto start = text.find_first_not_of('\n');
  if (start == std::string_view::npos) return "no reason given";
  text.remove_prefix(start);
  return std::string(text.substr(0, text.find('\n')));
}

void print(std::string_view title, const std::vector<std::pair<std::string, std::string>>& entries) {
  if (entries.empty()) return;
  std::cout << title << "\n";
  for (const auto& [test, reason] : entries) std::cout << "  " << test << "\n    " << reason << "\n";
}

}  // namespace

void Report::OnTestIterationStart(const ::testing::UnitTest& /*unit_test*/, int /*iteration*/) {
  lists_.forget_run();
  not_applicable_.clear();
  untested_.clear();
}

void Report::OnTestPartResult(const ::testing::TestPartResult& result) {
  if (result.skipped()) skip_reason_ = first_line(result.summary());
}

void Report::OnTestEnd(const ::testing::TestInfo& info) {
  // A skip that does not claim to be out of scope is something that was not tested.
  const bool skipped = info.result()->Skipped();
  const bool untested = skipped && !skip_reason_.starts_with(not_applicable_prefix);
  lists_.ended(info, untested);
  if (!skipped) return;
  const std::string test = std::string(info.test_suite_name()) + "." + info.name();
  if (untested) {
    untested_.emplace_back(test, without(skip_reason_, untested_prefix));
  } else {
    not_applicable_.emplace_back(test, without(skip_reason_, not_applicable_prefix));
  }
}

void Report::OnTestProgramEnd(const ::testing::UnitTest& unit_test) {
  std::cout << "\n";
  print("Not applicable, by what the backend says of itself:", not_applicable_);
  print("UNTESTED, for want of means:", untested_);
  print("OTHER than the list of what is untested says:", lists_.differences(unit_test));
  std::cout << "dlock-conformance: " << unit_test.successful_test_count() << " passed, "
            << unit_test.failed_test_count() << " failed, " << untested_.size() << " untested, "
            << not_applicable_.size() << " not applicable" << std::endl;
}

int Report::exit_status(const ::testing::UnitTest& unit_test) const {
  if (unit_test.failed_test_count() > 0) return exit_failed;
  if (unit_test.test_to_run_count() == 0) return exit_failed;
  if (!lists_.differences(unit_test).empty()) return exit_failed;
  return lists_.all_untested_is_listed() ? exit_passed : exit_untested;
}

}  // namespace dlock::conformance
