#include "backends/common/survey.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

namespace dlock::common {

namespace {

class SurveyTest : public testing::Test {
 protected:
  void run(std::size_t names) {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < names; ++i) all.push_back(std::to_string(i));
    Survey::run(
        std::move(all),
        [this](const std::string& name, Survey::Answer answer) { asked.emplace_back(name, std::move(answer)); },
        [this](Result<std::vector<LockInfo>> all_of_them) {
          ++ends;
          result = std::move(all_of_them);
        });
  }
  void answer_one(bool there = true) {
    const auto [name, answer] = std::move(asked.front());
    asked.pop_front();
    answer(there ? std::optional(LockInfo{.name = name}) : std::nullopt);
  }

  std::deque<std::pair<std::string, Survey::Answer>> asked;
  Result<std::vector<LockInfo>> result = Failure{};
  int ends = 0;
};

TEST_F(SurveyTest, LooksAtAFewAtOnceAndAtAllInTheEnd) {
  run(200);
  std::size_t most = 0;
  while (!asked.empty()) {
    most = std::max(most, asked.size());
    answer_one(asked.front().first != "7");
  }
  EXPECT_EQ(most, 64U);
  ASSERT_EQ(ends, 1);
  EXPECT_EQ(result.value().size(), 199U);
}

TEST_F(SurveyTest, OfNothingEndsAtOnce) {
  run(0);
  ASSERT_EQ(ends, 1);
  EXPECT_TRUE(result.value().empty());
}

TEST_F(SurveyTest, EndsWithTheFirstFailure) {
  run(100);
  answer_one();
  const auto failing = std::move(asked.front().second);
  asked.pop_front();
  failing(Failure{errc::unavailable, "gone"});
  ASSERT_EQ(ends, 1);
  EXPECT_EQ(result.failure().code, errc::unavailable);
  while (!asked.empty()) answer_one();
  EXPECT_EQ(ends, 1);
}

TEST_F(SurveyTest, AnswersMayComeAtOnce) {
  std::size_t found = 0;
  Survey::run(
      std::vector<std::string>(100'000, "x"),
      [](const std::string& name, const Survey::Answer& answer) { answer(std::optional(LockInfo{.name = name})); },
      [&](Result<std::vector<LockInfo>> all) { found = all.value().size(); });
  EXPECT_EQ(found, 100'000U);
}

}  // namespace

}  // namespace dlock::common
