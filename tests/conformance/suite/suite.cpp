#include <dlock/conformance/suite.hpp>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <iostream>
#include <ranges>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "suite/contract.hpp"
#include "suite/crash.hpp"
#include "suite/plain_lock.hpp"
#include "suite/report.hpp"
#include "suite/sharing.hpp"
#include "suite/watchdog.hpp"

namespace dlock::conformance {

// Each source of tests has DLOCK_CONFORMANCE_TESTS(its name).
#define DLOCK_CONFORMANCE_SOURCES(do)                                                                                          \
  do                                                                                                                           \
  (exclusion) do(validity) do(loss) do(fencing) do(ownership) do(residue) do(crash) do(deadlines) do(outcomes) do(renewal) do( \
      waking) do(release) do(names) do(threads) do(lifetime) do(reentrancy) do(options) do(plain_lock) do(several) do(sharing) do(election)
#define DLOCK_DECLARE_LINK(file) void link_##file();
#define DLOCK_CALL_LINK(file) link_##file();

DLOCK_CONFORMANCE_SOURCES(DLOCK_DECLARE_LINK)

namespace {

void link_all_tests(){DLOCK_CONFORMANCE_SOURCES(DLOCK_CALL_LINK)}

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

}  // namespace

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
  auto* report = new Report(subjects());  // GoogleTest owns its listeners
  listeners.Append(report);
  listeners.Append(new Watchdog);
  const int failed = RUN_ALL_TESTS();
  if (GTEST_FLAG_GET(list_tests)) return exit_passed;
  if (failed != 0) return exit_failed;
  return report->exit_status(*::testing::UnitTest::GetInstance());
}

namespace {

// Those that get the tests of the client too.
std::vector<Subject> client_subjects() {
  std::vector<Subject> some = subjects();
  std::erase_if(some, [](const Subject& each) { return !each.client_tests; });
  return some;
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

std::vector<Subject> subjects_with(LockKind kind) {
  std::vector<Subject> some = subjects();
  std::erase_if(some, [&](const Subject& each) { return std::ranges::find(each.kinds, kind) == each.kinds.end(); });
  return some;
}

std::vector<PlainLock::ParamType> plain_locks() {
  std::vector<PlainLock::ParamType> all;
  for (const Subject& subject : client_subjects()) {
    for (const Adapter& adapter : adapters()) all.emplace_back(subject, adapter);
  }
  return all;
}

constexpr auto name_of = [](const auto& row) {
  const auto& [subject, variant] = row.param;
  return subject.name + (variant.name.empty() ? "" : "_") + variant.name;
};
constexpr auto name_of_subject = [](const auto& row) { return row.param.name; };

}  // namespace

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Contract);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ClientContract);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CrashContract);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PlainLock);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ReadWriteContract);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PermitContract);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ElectionContract);

using ::testing::ValuesIn;

INSTANTIATE_TEST_SUITE_P(, ReadWriteContract, ValuesIn(subjects_with(LockKind::read_write)), name_of_subject);
INSTANTIATE_TEST_SUITE_P(, PermitContract, ValuesIn(subjects_with(LockKind::semaphore)), name_of_subject);
INSTANTIATE_TEST_SUITE_P(, ElectionContract, ValuesIn(subjects_with(LockKind::election)), name_of_subject);
INSTANTIATE_TEST_SUITE_P(, CrashContract, ValuesIn(subjects()), name_of_subject);
INSTANTIATE_TEST_SUITE_P(, Contract, ValuesIn(of_their_kinds(subjects())), name_of);
INSTANTIATE_TEST_SUITE_P(, ClientContract, ValuesIn(of_their_kinds(client_subjects())), name_of);
INSTANTIATE_TEST_SUITE_P(, PlainLock, ValuesIn(plain_locks()), name_of);

}  // namespace dlock::conformance
