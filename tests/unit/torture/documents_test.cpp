// What docs/histories.md says of the format and the rules.
#include <gtest/gtest.h>

#include <cctype>
#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "torture/checker/checker.hpp"

namespace dlock::torture {
namespace {

std::string page() {
  std::ifstream file(DLOCK_SOURCE_DIR "/docs/histories.md");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(HistoriesPage, ItsExampleIsACleanHistory) {
  std::istringstream lines(page());
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

TEST(HistoriesPage, NamesEveryEvent) {
  const std::string text = page();
  for (int kind = 0; kind <= static_cast<int>(Kind::residue); ++kind) {
    const auto name = name_of(static_cast<Kind>(kind));
    EXPECT_NE(text.find("`" + std::string(name) + "`"), std::string::npos) << name;
  }
}

TEST(HistoriesPage, HasAParagraphForEveryRule) {
  const std::string text = page();
  for (const Rule rule : all_rules) {
    std::string name(name_of(rule));
    name.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(name.front())));
    EXPECT_NE(text.find("\n**" + name + ".** "), std::string::npos) << name;
  }
}

TEST(HistoriesPage, GivesTheBoundsThatHold) {
  const std::string text = page();
  const Rules rules;
  const auto says = [&](const std::string& name, std::chrono::nanoseconds bound) {
    return text.find("\"" + name + "_ns\": " + std::to_string(bound.count()) + ",") != std::string::npos;
  };
  EXPECT_TRUE(says("slack", rules.slack));
  EXPECT_TRUE(says("release", rules.release));
  EXPECT_TRUE(says("loss_slack", rules.loss_slack));
  EXPECT_TRUE(says("recovery", rules.recovery));
  EXPECT_TRUE(says("settled", rules.settled));
  EXPECT_TRUE(says("hand_over", rules.hand_over));
}

}  // namespace
}  // namespace dlock::torture
