#include "backends/common/findings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlock::common {

namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Severity = Finding::Severity;

TEST(CommonFindings, TellHowLongAnAnswerTook) {
  const Finding finding = server_answered("db1:7000", 1'500'001ns);
  EXPECT_EQ(finding.severity, Severity::ok);
  EXPECT_EQ(finding.message, "db1:7000 answered within 1501us");
}

TEST(CommonFindings, CompareClocks) {
  EXPECT_EQ(compared_clocks(1005, 1000, Severity::warning, "x").severity, Severity::ok);
  const Finding ahead = compared_clocks(1060, 1000, Severity::warning, "leases end early");
  EXPECT_EQ(ahead.severity, Severity::warning);
  EXPECT_THAT(ahead.message, HasSubstr("ahead of ours; if it is corrected, leases end early"));
  EXPECT_THAT(compared_clocks(994, 1000, Severity::note, "x").message, HasSubstr("6s behind ours"));
}

TEST(CommonFindings, WantEncryptionOnANetwork) {
  EXPECT_EQ(not_encrypted(true, "; do").severity, Severity::ok);
  const Finding finding = not_encrypted(false, "; do something");
  EXPECT_EQ(finding.severity, Severity::warning);
  EXPECT_THAT(finding.message, HasSubstr("change all traffic; do something"));
}

}  // namespace

}  // namespace dlock::common
