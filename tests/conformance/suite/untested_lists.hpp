// Compares what a run left untested with what its subjects say they leave untested.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlock/conformance/suite.hpp>

namespace dlock::conformance {

class UntestedLists {
 public:
  explicit UntestedLists(const std::vector<Subject>& subjects) : subjects_(subjects) {}

  void ended(const ::testing::TestInfo& test, bool untested);
  void forget_run() { ended_.clear(); }

  // Each with what is wrong with it.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> differences(
      const ::testing::UnitTest& unit_test) const;
  // Whether every test that was left untested is of a subject that has a list.
  [[nodiscard]] bool all_untested_is_listed() const;

 private:
  [[nodiscard]] const Subject* subject_of(const ::testing::TestInfo& test) const;

  std::vector<Subject> subjects_;
  std::map<const ::testing::TestInfo*, bool> ended_;  // whether it was left untested
};

}  // namespace dlock::conformance
