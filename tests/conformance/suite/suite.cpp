#include <dlock/conformance/suite.hpp>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "suite/contract.hpp"

namespace dlock::conformance {

// Each source of tests has DLOCK_CONFORMANCE_TESTS(its name).
#define DLOCK_CONFORMANCE_SOURCES(do)                                                                         \
  do                                                                                                          \
  (exclusion) do(loss) do(ownership) do(residue) do(crash) do(deadlines) do(waking) do(names) do(threads) do( \
      plain_lock) do(sharing) do(election)
#define DLOCK_DECLARE_LINK(file) void link_##file();
#define DLOCK_CALL_LINK(file) link_##file();

DLOCK_CONFORMANCE_SOURCES(DLOCK_DECLARE_LINK)

namespace {

void link_all_tests() {
  DLOCK_CONFORMANCE_SOURCES(DLOCK_CALL_LINK)
}

using Entries = std::vector<std::pair<std::string, std::string>>;  // test, reason

std::string name_of_test(const ::testing::TestInfo& test) {
  return std::string(test.test_suite_name()) + "." + test.name();
}

// Without the subject, as lists name it.
std::string listed_name(const ::testing::TestInfo& test) {
  const std::string name = name_of_test(test);
  return name.substr(0, name.find('/'));
}

// A test's parameter is shown as its subject's name, or "(<that name>, <kind>)". nullptr: it has none.
const Subject* subject_of(const ::testing::TestInfo& test) {
  std::string_view shown = test.value_param() == nullptr ? "" : test.value_param();
  if (shown.starts_with('(')) shown = shown.substr(1, shown.find(',') - 1);
  const auto found = std::ranges::find(all_subjects(), shown, &Subject::name);
  return found == all_subjects().end() ? nullptr : &*found;
}

void print(std::string_view title, const Entries& entries) {
  if (entries.empty()) return;
  std::cout << title << "\n";
  for (const auto& [test, reason] : entries) std::cout << "  " << test << "\n    " << reason << "\n";
}

// Says at the end of a run above all what was not tested.
class Report final : public ::testing::EmptyTestEventListener {
 public:
  void OnTestIterationStart(const ::testing::UnitTest& /*unit_test*/, int /*iteration*/) override {
    ended_.clear();
    not_applicable_.clear();
    untested_.clear();
  }

  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.skipped()) return;
    // Without the line feed and location that GoogleTest may add.
    std::string_view text = result.summary();
    text.remove_prefix(std::min(text.find_first_not_of('\n'), text.size()));
    skip_reason_ = text.substr(0, text.find('\n'));
  }

  void OnTestEnd(const ::testing::TestInfo& info) override {
    constexpr std::string_view out_of_scope = "not applicable: ";
    constexpr std::string_view out_of_reach = "untested: ";
    // A skip that does not claim to be out of scope is something that was not tested.
    const bool skipped = info.result()->Skipped();
    const bool untested = skipped && !skip_reason_.starts_with(out_of_scope);
    ended_[&info] = untested;
    if (!skipped) return;
    const std::string_view prefix = untested ? out_of_reach : out_of_scope;
    if (skip_reason_.starts_with(prefix)) skip_reason_.erase(0, prefix.size());
    (untested ? untested_ : not_applicable_).emplace_back(name_of_test(info), skip_reason_);
  }

  // Prints the lists and counts to standard output.
  void OnTestProgramEnd(const ::testing::UnitTest& unit_test) override {
    std::cout << "\n";
    print("Not applicable, by what the backend says of itself:", not_applicable_);
    print("UNTESTED, for want of means:", untested_);
    print("OTHER than the list of what is untested says:", differences(unit_test));
    std::cout << "dlock-conformance: " << unit_test.successful_test_count() << " passed, "
              << unit_test.failed_test_count() << " failed, " << untested_.size() << " untested, "
              << not_applicable_.size() << " not applicable" << std::endl;
  }

  // As documented for run().
  [[nodiscard]] int exit_status(const ::testing::UnitTest& unit_test) const {
    if (unit_test.failed_test_count() > 0 || unit_test.test_to_run_count() == 0) return exit_failed;
    if (!differences(unit_test).empty()) return exit_failed;
    const bool all_listed = std::ranges::none_of(ended_, [](const auto& each) {
      const Subject* subject = subject_of(*each.first);
      return each.second && (subject == nullptr || !subject->untested);
    });
    return all_listed ? exit_passed : exit_untested;
  }

 private:
  // Between what the run left untested and what its subjects say they leave untested; each with what is wrong with it.
  [[nodiscard]] Entries differences(const ::testing::UnitTest& unit_test) const {
    std::map<const Subject*, std::set<std::string>> not_found;
    for (const Subject& each : all_subjects()) {
      if (each.untested) not_found[&each] = {each.untested->begin(), each.untested->end()};
    }
    Entries result;
    for (int i = 0; i < unit_test.total_test_suite_count(); ++i) {
      const ::testing::TestSuite& tests = *unit_test.GetTestSuite(i);
      for (int k = 0; k < tests.total_test_count(); ++k) {
        const ::testing::TestInfo& test = *tests.GetTestInfo(k);
        const Subject* subject = subject_of(test);
        if (subject == nullptr || !subject->untested) continue;
        not_found[subject].erase(listed_name(test));
        const auto ended = ended_.find(&test);
        if (ended == ended_.end()) continue;  // it was not selected
        const bool listed = std::ranges::find(*subject->untested, listed_name(test)) != subject->untested->end();
        if (listed == ended->second) continue;
        result.emplace_back(name_of_test(test),
                            listed ? "is listed, but was not left untested" : "was left untested, but is not listed");
      }
    }
    for (const auto& [subject, names] : not_found) {
      for (const std::string& each : names) {
        result.emplace_back(each + "/" + subject->name, "is listed, but is no test");
      }
    }
    return result;
  }

  std::map<const ::testing::TestInfo*, bool> ended_;  // whether it was left untested
  std::string skip_reason_;
  Entries not_applicable_;
  Entries untested_;
};

// Ends the program when a test hangs where no event can be waited for with a limit.
class Watchdog final : public ::testing::EmptyTestEventListener {
 public:
  void OnTestStart(const ::testing::TestInfo& info) override {
    thread_ = std::jthread([this, test = name_of_test(info)](const std::stop_token& stop) { watch(stop, test); });
  }
  void OnTestEnd(const ::testing::TestInfo& /*info*/) override { thread_ = {}; }

 private:
  void watch(const std::stop_token& stop, const std::string& test) {
    constexpr int guards_a_test = 8;  // a test waits for several things in a row, each with its guard
    std::unique_lock lock(mutex_);
    ended_.wait_for(lock, stop, guard() * guards_a_test, [] { return false; });
    if (stop.stop_requested()) return;
    std::cout << "[  FAILED  ] " << test << "\n[   HANG   ] it does not end; giving up" << std::endl;
    std::_Exit(exit_failed);  // there is no way to stop the other threads
  }

  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::jthread thread_;
};

std::vector<Subject>& subjects() {
  static std::vector<Subject> all;
  return all;
}

// A thousand leases need a thousand descriptors in some backends.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) std::cerr << "cannot raise the limit of open files\n";
}

// Each with the kinds that it has.
std::vector<Contract::ParamType> of_their_kinds(const std::vector<Subject>& some) {
  std::vector<Contract::ParamType> all;
  for (const Subject& subject : some) {
    for (const Kind& kind : kinds()) {
      if (std::ranges::find(subject.kinds, kind.kind) != subject.kinds.end()) all.emplace_back(subject, kind);
    }
  }
  return all;
}

}  // namespace

const std::vector<Subject>& all_subjects() {
  return subjects();
}

std::vector<Subject> subjects_with(LockKind kind) {
  std::vector<Subject> some = subjects();
  std::erase_if(some, [&](const Subject& each) { return std::ranges::find(each.kinds, kind) == each.kinds.end(); });
  return some;
}

std::vector<Subject> client_subjects() {
  std::vector<Subject> some = subjects();
  std::erase_if(some, [](const Subject& each) { return !each.client_tests; });
  return some;
}

void add_subject(Subject subject) {
  subjects().push_back(std::move(subject));
}

int run(int argc, char** argv) {
  if (const auto status = run_as_helper(argc, argv)) return *status;
  link_all_tests();
  raise_descriptor_limit();
  ::testing::InitGoogleTest(&argc, argv);
  if (argc > 1) {
    std::cerr << "unknown argument \"" << argv[1] << "\"\n";
    return exit_usage;
  }
  auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
  auto* report = new Report;  // GoogleTest owns its listeners
  listeners.Append(report);
  listeners.Append(new Watchdog);
  const int failed = RUN_ALL_TESTS();
  if (GTEST_FLAG_GET(list_tests)) return exit_passed;
  if (failed != 0) return exit_failed;
  return report->exit_status(*::testing::UnitTest::GetInstance());
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Contract);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ClientContract);
INSTANTIATE_TEST_SUITE_P(, Contract, ::testing::ValuesIn(of_their_kinds(all_subjects())), name_of);
INSTANTIATE_TEST_SUITE_P(, ClientContract, ::testing::ValuesIn(of_their_kinds(client_subjects())), name_of);

}  // namespace dlock::conformance
