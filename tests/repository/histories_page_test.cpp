// docs/histories.md has the format and the rules of the checker.
#include <gtest/gtest.h>

#include <cctype>
#include <chrono>
#include <sstream>
#include <string>
#include <vector>

#include "tests/repository/documents.hpp"
#include "torture/checker/checker.hpp"

namespace dlock::torture {
namespace {

class HistoriesPageTest : public testing::Test {
 protected:
  void expect(const std::string& part) const { EXPECT_NE(text_.find(part), std::string::npos) << part; }

  std::string text_ = documents::contents(documents::kProject / "docs/histories.md");
};

TEST_F(HistoriesPageTest, Example_IsAHistoryThatBreaksNoRule) {
  std::istringstream lines(text_);
  std::vector<Event> example;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("{\"time\"")) continue;
    std::string why;
    const auto event = parse_line(line, why);
    ASSERT_TRUE(event.has_value()) << line << ": " << why;
    EXPECT_EQ(to_line(*event), line);
    example.push_back(*event);
  }
  EXPECT_EQ(example.size(), 5U);
  EXPECT_TRUE(check(example, {}).violations.empty());
}

TEST_F(HistoriesPageTest, EventsRulesAndBounds_AreThere) {
  for (int kind = 0; kind <= static_cast<int>(Kind::residue); ++kind) {
    expect("`" + std::string(name_of(static_cast<Kind>(kind))) + "`");
  }
  for (const Rule rule : all_rules) {
    std::string name(name_of(rule));
    name.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(name.front())));
    expect("\n**" + name + ".** ");
  }
  const Rules rules;
  for (const auto& [name, bound] : {std::pair("slack", rules.slack), std::pair("release", rules.release),
                                    std::pair("loss_slack", rules.loss_slack), std::pair("recovery", rules.recovery),
                                    std::pair("settled", rules.settled), std::pair("hand_over", rules.hand_over)}) {
    expect("\"" + std::string(name) + "_ns\": " + std::to_string(bound.count()) + ",");
  }
}

}  // namespace
}  // namespace dlock::torture
