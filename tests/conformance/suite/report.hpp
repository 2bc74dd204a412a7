// What is said at the end of a run: above all, what was not tested.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "suite/untested_lists.hpp"

namespace dlock::conformance {

class Report final : public ::testing::EmptyTestEventListener {
 public:
  explicit Report(const std::vector<Subject>& subjects) : lists_(subjects) {}

  void OnTestIterationStart(const ::testing::UnitTest& unit_test, int iteration) override;
  void OnTestPartResult(const ::testing::TestPartResult& result) override;
  void OnTestEnd(const ::testing::TestInfo& info) override;
  // Prints the lists and counts to standard output.
  void OnTestProgramEnd(const ::testing::UnitTest& unit_test) override;

  // As documented for run().
  [[nodiscard]] int exit_status(const ::testing::UnitTest& unit_test) const;

 private:
  using Entries = std::vector<std::pair<std::string, std::string>>;  // test, reason
  UntestedLists lists_;
  std::string skip_reason_;
  Entries not_applicable_;
  Entries untested_;
};

}  // namespace dlock::conformance
