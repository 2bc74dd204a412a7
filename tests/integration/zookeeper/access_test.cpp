// Identities, chroots, and what dlock doctor says of a server.
#include "zookeeper/zookeeper_test.hpp"

namespace dlock::test {

namespace {

constexpr const char* alice = "alice:al1ce-secret";
const std::string as_alice = std::string("auth=digest:") + alice;

class AccessTest : public ZooKeeperTest {
 protected:
  void TearDown() override {
    ZooKeeperClient(server.address(), alice).remove_all("/dlock");  // nobody else may
    ZooKeeperTest::TearDown();
  }
};

TEST_F(AccessTest, LockOfOneIdentity_IsDeniedToOthers) {
  Contender owner(steady({}, as_alice), "private");
  Contender again(steady({}, as_alice), "private");
  {
    const Lease lease = take(owner.lock);
    EXPECT_FALSE(again.lock.try_acquire().has_value());
    EXPECT_THROW((void)zk.children(path("private")), ZooKeeperRefusal);
  }
  EXPECT_TRUE(take(again.lock).release());
  for (const char* const parameters : {"auth=digest:mallory:mall0ry-secret", long_session}) {
    Contender stranger(steady({}, parameters), "private");
    const Failure failure = failure_of([&] { (void)stranger.lock.acquire({.wait = conformance::guard()}); });
    EXPECT_EQ(failure.code, errc::access_denied);
    EXPECT_EQ(failure.detail.find("secret"), std::string::npos) << failure.detail;
    std::error_code error;
    EXPECT_FALSE(stranger.lock.try_acquire({}, error).has_value());
    EXPECT_EQ(error, errc::access_denied) << error.message();
  }
  EXPECT_TRUE(take(owner.lock).held());
}

TEST_F(AccessTest, Reconnected_KeepsItsIdentity) {
  Contender ours(disturbed({}, as_alice + "&" + short_session), "private");
  EXPECT_TRUE(take(ours.lock).release());
  proxy.drop();
  EXPECT_TRUE(take(ours.lock).release());
  Lease lease = take(ours.lock);
  const LossEvent loss(lease);
  cut();
  loss.event().wait("the loss is not signalled");
  heal();
  EXPECT_TRUE(take(ours.lock).release());
}

TEST_F(AccessTest, MissingChroot_IsNamedAndMadeByInitialize) {
  Contender ours(steady({}, "/not/there?" + std::string(long_session)), "a");
  expect_failure(errc::invalid_argument, "/not/there",
                 [&] { (void)ours.lock.acquire({.wait = conformance::guard()}); });
  EXPECT_FALSE(zk.get("/not").has_value());
  EXPECT_TRUE(mentions(ours.client.diagnose(), Finding::Severity::error, "/not/there"));
  Contender later(steady({}, "/not/there?" + std::string(long_session)), "a");
  EXPECT_EQ(later.client.initialize(), (std::vector<std::string>{"node /not", "node /not/there"}));
  EXPECT_TRUE(later.client.initialize().empty());
  const Lease lease = take(later.lock);
  EXPECT_EQ(zk.children("/not/there/dlock/a").value().size(), 1U);
}

TEST_F(AccessTest, Diagnosis_NamesTheServerAndWhatItGranted) {
  const auto findings = steady({}, short_session).diagnose();
  EXPECT_FALSE(mentions(findings, Finding::Severity::error, ""));
  for (const char* const text : {"3.", "standalone", "4s"}) {
    EXPECT_TRUE(mentions(findings, Finding::Severity::ok, text)) << text;
  }
}

}  // namespace

}  // namespace dlock::test
