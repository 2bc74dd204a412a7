// What dlock doctor says about real servers.
#include "zookeeper/zookeeper_test.hpp"

namespace dlock::test {

namespace {

std::string shown(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& each : findings) text += each.check + ": " + each.message + "\n";
  return text;
}

class DiagnosisTest : public ZooKeeperTest {};

TEST_F(DiagnosisTest, Server_IsNamedWithWhatItGranted) {
  const Client client = steady({}, short_session);
  const auto findings = client.diagnose();
  EXPECT_FALSE(mentions(findings, Finding::Severity::error, "")) << shown(findings);
  EXPECT_NE(shown(findings).find("3."), std::string::npos) << shown(findings);
  EXPECT_NE(shown(findings).find("standalone"), std::string::npos) << shown(findings);
  EXPECT_NE(shown(findings).find("4s"), std::string::npos) << shown(findings);
}

TEST(EnsembleDiagnosisTest, ServersDown_AreNamed) {
  ZooKeeperEnsemble ensemble;
  const Client client = connect_patiently(ensemble.url(long_session));
  const auto healthy = client.diagnose();
  EXPECT_FALSE(mentions(healthy, Finding::Severity::error, "")) << shown(healthy);
  EXPECT_NE(shown(healthy).find("leader"), std::string::npos) << shown(healthy);
  const std::size_t down = ensemble.follower();
  ensemble.server(down).kill();
  const auto findings = client.diagnose();
  EXPECT_NE(shown(findings).find(std::to_string(ensemble.server(down).port())), std::string::npos) << shown(findings);
}

}  // namespace

}  // namespace dlock::test
