#include "suite/untested_lists.hpp"

#include <algorithm>
#include <set>

namespace dlock::conformance {

namespace {

// Without the subject, as lists name it.
std::string listed_name(const ::testing::TestInfo& test) {
  const std::string name = std::string(test.test_suite_name()) + "." + test.name();
  return name.substr(0, name.find('/'));
}

// The subject, and what follows where there are several tests of that name.
std::string_view parameter_name(const ::testing::TestInfo& test) {
  const std::string_view name = test.name();
  const auto slash = name.find('/');
  return slash == std::string_view::npos ? std::string_view() : name.substr(slash + 1);
}

bool is_of(const Subject& subject, std::string_view parameter) {
  if (!parameter.starts_with(subject.name)) return false;
  return parameter.size() == subject.name.size() || parameter[subject.name.size()] == '_';
}

}  // namespace

// One subject's name may begin with another's.
const Subject* UntestedLists::subject_of(const ::testing::TestInfo& test) const {
  const Subject* longest = nullptr;
  for (const Subject& each : subjects_) {
    if (!is_of(each, parameter_name(test))) continue;
    if (longest == nullptr || each.name.size() > longest->name.size()) longest = &each;
  }
  return longest;
}

void UntestedLists::ended(const ::testing::TestInfo& test, bool untested) {
  ended_[&test] = untested;
}

std::vector<std::pair<std::string, std::string>> UntestedLists::differences(
    const ::testing::UnitTest& unit_test) const {
  std::map<const Subject*, std::set<std::string>> not_found;
  for (const Subject& each : subjects_) {
    if (each.untested) not_found[&each] = {each.untested->begin(), each.untested->end()};
  }
  std::vector<std::pair<std::string, std::string>> result;
  for (int i = 0; i < unit_test.total_test_suite_count(); ++i) {
    const ::testing::TestSuite& tests = *unit_test.GetTestSuite(i);
    for (int k = 0; k < tests.total_test_count(); ++k) {
      const ::testing::TestInfo& test = *tests.GetTestInfo(k);
      const Subject* subject = subject_of(test);
      if (subject == nullptr || !subject->untested) continue;
      not_found[subject].erase(listed_name(test));
      const auto ended = ended_.find(&test);
      if (ended == ended_.end()) continue;  // it was not selected
      const auto& list = *subject->untested;
      const bool listed = std::find(list.begin(), list.end(), listed_name(test)) != list.end();
      if (listed == ended->second) continue;
      result.emplace_back(std::string(test.test_suite_name()) + "." + test.name(),
                          listed ? "is listed, but was not left untested" : "was left untested, but is not listed");
    }
  }
  for (const auto& [subject, names] : not_found) {
    for (const std::string& each : names) result.emplace_back(each + "/" + subject->name, "is listed, but is no test");
  }
  return result;
}

bool UntestedLists::all_untested_is_listed() const {
  return std::none_of(ended_.begin(), ended_.end(), [this](const auto& each) {
    const Subject* subject = subject_of(*each.first);
    return each.second && (subject == nullptr || !subject->untested);
  });
}

}  // namespace dlock::conformance
