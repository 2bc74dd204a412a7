// What people and tools are told.
#include <algorithm>

#include "zookeeper/zookeeper_test.hpp"

namespace dlock::test {

namespace {

bool mentions(const std::vector<Finding>& findings, Finding::Severity severity, const std::string& text) {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& each) {
    return each.severity == severity && each.message.find(text) != std::string::npos;
  });
}

std::string shown(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& each : findings) text += each.check + ": " + each.message + "\n";
  return text;
}

class InspectionTest : public ZooKeeperStrategyTest {
 protected:
  [[nodiscard]] static bool queued() { return std::string(GetParam()) != "ephemeral"; }
};

TEST_P(InspectionTest, SaysWhoHoldsAndHowManyWait) {
  const Client holding = steady({.label = "holding"});
  const Client asking = steady();
  EXPECT_FALSE(asking.inspect("x").held);
  DistributedLock lock = holding.lock("x");
  const Lease lease = take(lock);
  Pending first(lock, {});
  Pending second(lock, {});
  if (queued()) await_residue("x", 3);
  const LockInfo info = asking.inspect("x");
  EXPECT_EQ(info.name, "x");
  EXPECT_TRUE(info.held);
  EXPECT_EQ(info.holder, holding.holder());
  EXPECT_EQ(info.token, lease.token());
  if (asking.capabilities().counts_waiters) {
    EXPECT_EQ(info.waiters, 2U);
  }
}

TEST_P(InspectionTest, ListsTheLocksThatAreHeld) {
  const Client client = steady();
  const std::vector<std::string> names = {"a", "a/b", "%", "..", "\xc3\xa9"};
  std::vector<Lease> leases;
  for (const std::string& name : names) {
    DistributedLock lock = client.lock(name);
    leases.push_back(take(lock));
  }
  std::vector<std::string> listed;
  for (const LockInfo& each : client.list()) {
    if (each.held) listed.push_back(each.name);
  }
  auto sorted = names;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(listed, sorted);
}

TEST_P(InspectionTest, BreaksALock) {
  const Client client = steady();
  const Client other_client = steady();
  DistributedLock lock = client.lock("broken");
  const Lease lease = take(lock);
  const LossEvent loss(lease);
  EXPECT_TRUE(other_client.break_lock("broken"));
  loss.event().wait("the holder is not told");
  EXPECT_FALSE(other_client.break_lock("broken"));
  EXPECT_FALSE(other_client.break_lock("never-there"));
  EXPECT_TRUE(take(lock).held());
}

INSTANTIATE_TEST_SUITE_P(, InspectionTest, all_strategies(), strategy_name);

class DiagnosisTest : public ZooKeeperTest {};

TEST_F(DiagnosisTest, NamesTheServerAndWhatItGranted) {
  const Client client = steady({}, short_session);
  const auto findings = client.diagnose();
  EXPECT_FALSE(mentions(findings, Finding::Severity::error, "")) << shown(findings);
  EXPECT_NE(shown(findings).find("3."), std::string::npos) << shown(findings);
  EXPECT_NE(shown(findings).find("standalone"), std::string::npos) << shown(findings);
  EXPECT_NE(shown(findings).find("2s"), std::string::npos) << shown(findings);
}

TEST_F(DiagnosisTest, SaysThatNobodyAnswers) {
  const Client client = steady(impatient());
  server.stop();
  const auto findings = client.diagnose();
  EXPECT_TRUE(mentions(findings, Finding::Severity::error, "")) << shown(findings);
}

TEST_F(DiagnosisTest, EndsWhenTheServerStandsStill) {
  const Client client = steady(impatient());
  server.freeze();
  const auto start = std::chrono::steady_clock::now();
  const auto findings = client.diagnose();
  EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  EXPECT_TRUE(mentions(findings, Finding::Severity::error, "")) << shown(findings);
  server.thaw();
}

TEST(EnsembleDiagnosisTest, NamesTheServersThatAreDown) {
  ZooKeeperEnsemble ensemble;
  const Client client = connect(ensemble.url(long_session));
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
