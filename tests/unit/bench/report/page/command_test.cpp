#include "bench/report/page/command.hpp"

#include <gtest/gtest.h>

#include "tests/unit/bench/report/sample.hpp"

namespace dlock::bench {
namespace {

std::string command(const std::string& whole) {
  Report report;
  report.command = whole;
  return command_for(report, {"mix"});
}

TEST(Command, AsksForThatScenario) {
  EXPECT_EQ(command("dlock bench --url 'redis://h?a=b c'"), "dlock bench --url 'redis://h?a=b c' --scenario mix");
}

TEST(Command, AsksForNoOther) {
  EXPECT_EQ(command("dlock bench --scenario latency --quick --scenario=mix --url file://"),
            "dlock bench --quick --url file:// --scenario mix");
  EXPECT_EQ(command("dlock bench --scenario"), "dlock bench --scenario mix");
}

TEST(Command, AsksForSeveralScenarios) {
  EXPECT_EQ(command_for({}, {"mix", "holding"}), "dlock bench --scenario mix --scenario holding");
}

TEST(Command, IsThereWithoutOneInTheReport) {
  EXPECT_EQ(command(""), "dlock bench --scenario mix");
}

std::string with_urls(std::vector<std::pair<std::string, std::string>> strategies_and_urls) {
  Report report;
  for (auto& [strategy, url] : strategies_and_urls) {
    report.services.push_back(service("redis", strategy));
    report.services.back().url = url;
  }
  return whole_command(report);
}

TEST(Command, NamesTheServices) {
  EXPECT_EQ(with_urls({{"", "file:///run/lock"}, {"queue", "redis://a:1"}}),
            "dlock bench --url file:///run/lock --url redis://a:1");
}

TEST(Command, SeveralStrategiesOfAServiceAreOneUrl) {
  EXPECT_EQ(with_urls({{"queue", "redis://a?strategy=queue"}, {"poll", "redis://a?strategy=poll"}}),
            "dlock bench --url redis://a");
  EXPECT_EQ(with_urls({{"queue", "redis://a?strategy=queue&db=1"}, {"poll", "redis://a?strategy=poll&db=1"}}),
            "dlock bench --url 'redis://a?db=1'");
  EXPECT_EQ(with_urls({{"queue", "redis://a?db=1&strategy=queue"}, {"poll", "redis://a?db=1&strategy=poll"}}),
            "dlock bench --url 'redis://a?db=1'");
}

TEST(Command, AServiceWithOneStrategyKeepsIt) {
  EXPECT_EQ(with_urls({{"queue", "redis://a?strategy=queue"}, {"poll", "redis://b?strategy=poll"}}),
            "dlock bench --url 'redis://a?strategy=queue' --url 'redis://b?strategy=poll'");
}

TEST(Command, MayBeGivenToAShell) {
  EXPECT_EQ(with_urls({{"", "file:///a b'$(c)"}}), "dlock bench --url 'file:///a b'\\''$(c)'");
}

}  // namespace
}  // namespace dlock::bench
