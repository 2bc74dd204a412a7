#include "bench/report/page/command.hpp"

#include <gtest/gtest.h>

namespace dlock::bench {
namespace {

std::string command(const std::string& whole) {
  Report report;
  report.command = whole;
  return command_for(report, "mix");
}

TEST(Command, AsksForThatScenario) {
  EXPECT_EQ(command("dlock bench --url 'redis://h?a=b c'"), "dlock bench --url 'redis://h?a=b c' --scenario mix");
}

TEST(Command, AsksForNoOther) {
  EXPECT_EQ(command("dlock bench --scenario latency --quick --scenario=mix --url file://"),
            "dlock bench --quick --url file:// --scenario mix");
  EXPECT_EQ(command("dlock bench --scenario"), "dlock bench --scenario mix");
}

TEST(Command, IsThereWithoutOneInTheReport) {
  EXPECT_EQ(command(""), "dlock bench --scenario mix");
}

}  // namespace
}  // namespace dlock::bench
