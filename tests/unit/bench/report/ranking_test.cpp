#include "bench/report/ranking.hpp"

#include <gtest/gtest.h>

#include "tests/unit/bench/report/sample.hpp"

namespace dlock::bench {
namespace {

std::vector<std::string> services(const std::vector<Contender>& contenders) {
  std::vector<std::string> names;
  for (const Contender& each : contenders) names.push_back(each.service);
  return names;
}

Ranking ranking_of(const std::vector<Measurement>& measurements, Better better) {
  std::vector<Contender> contenders;
  for (const Measurement& each : measurements) contenders.push_back({each.service, &each, each.figure(figure::p50)});
  return rank(contenders, better);
}

using Names = std::vector<std::string>;

TEST(Ranking, TheBestComesFirst) {
  const std::vector<Measurement> measured = {latency("a", {30, 31}), latency("b", {10, 11}), latency("c", {20, 21})};
  EXPECT_EQ(services(ranking_of(measured, Better::lower).best), Names{"b"});
  EXPECT_EQ(services(ranking_of(measured, Better::lower).rest), (Names{"c", "a"}));
  EXPECT_EQ(services(ranking_of(measured, Better::higher).best), Names{"a"});
}

TEST(Ranking, WhoCannotBeToldFromTheBestIsBest) {
  const std::vector<Measurement> measured = {latency("a", {10, 14}), latency("overlaps", {13, 20}),
                                             latency("slower", {15, 16})};
  EXPECT_EQ(services(ranking_of(measured, Better::lower).best), (Names{"a", "overlaps"}));
  const std::vector<Measurement> close = {latency("a", {100}), latency("close", {105}), latency("slower", {106})};
  EXPECT_EQ(services(ranking_of(close, Better::lower).best), (Names{"a", "close"}));
}

TEST(Ranking, WhoWasNotMeasuredTakesNoPart) {
  const std::vector<Measurement> measured = {latency("a", {}), measurement("latency", "b", {}, {}), latency("c", {3})};
  EXPECT_EQ(services(ranking_of(measured, Better::lower).best), Names{"c"});
  EXPECT_TRUE(ranking_of(measured, Better::lower).rest.empty());
}

TEST(Ranking, NamesAreASentence) {
  const auto names = [](Names all) {
    std::vector<Contender> contenders;
    for (const std::string& each : all) contenders.push_back({each, nullptr, nullptr});
    return names_text(contenders);
  };
  EXPECT_EQ(names({}), "");
  EXPECT_EQ(names({"a"}), "a");
  EXPECT_EQ(names({"a", "b"}), "a or b");
  EXPECT_EQ(names({"a", "b", "c"}), "a, b or c");
}

}  // namespace
}  // namespace dlock::bench
