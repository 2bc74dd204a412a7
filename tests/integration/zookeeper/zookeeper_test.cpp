// The nodes of a queue; hosts that do not answer; identities, chroots, and what dlock doctor says of a server.
#include <string>
#include <vector>

#include "torture/rig/socket.hpp"
#include "zookeeper/zookeeper_test.hpp"

namespace dlock::test {

namespace {

// As Curator would call its node.
constexpr const char* foreign_guid = "_c_0e1cf9d8-5f6c-4a49-8f0a-1c0f0c3f1b2d-lock-";

class QueueTest : public ZooKeeperTest {};

// Behind 2147483647 the server's counter sticks or becomes negative, and says nothing any more about who was first.
// Shows: hole zookeeper-numbers-used-up
TEST_F(QueueTest, NumbersUsedUp_AreRefusedWithARemedy) {
  // Of another client's node: the server's counter cannot be driven up in a test.
  for (const std::string number : {"2147483647", "2147418112", "-2147483648", "-0000000001"}) {
    SCOPED_TRACE(number);
    Contender ours(steady(), number);
    const std::string sibling = add_foreign(number, foreign_guid + number, ZooKeeperClient::Kind::ephemeral);
    for (const std::string& text : {path(number), std::string("delete")}) {
      expect_failure(errc::protocol, text, [&] { (void)ours.lock.acquire({.wait = conformance::guard()}); });
    }
    await_residue(number, 1);  // the sibling alone
    // What the operator is told to do helps.
    EXPECT_TRUE(zk.remove(sibling));
    EXPECT_TRUE(zk.remove(path(number)));
    EXPECT_TRUE(take(ours.lock).held());
  }
}

// The client library sends all its watches in one packet when it reconnects, and a server refuses more than a megabyte.
// Hazard: over 1 MiB of watched paths never reconnects: 640 KiB are watched, the rest is polled
TEST_F(QueueTest, MegabyteOfWatches_SurvivesAReconnection) {
  constexpr std::size_t locks = 600;
  const std::string prefix = "/" + std::string(500, 'p');
  const std::string parameters = std::string(long_session) + "&prefix=" + prefix;
  const Client client = disturbed({}, parameters);
  const Client other_client = steady({}, parameters);
  const auto name = [](std::size_t i) { return std::string(500, '/') + std::to_string(i); };  // three bytes each
  std::vector<Lease> leases;
  std::vector<DistributedLock> waiting_for;
  std::vector<Pending> waiting;
  {
    std::vector<Pending> granted;
    for (std::size_t i = 0; i < locks; ++i) {
      DistributedLock others = other_client.make_lock(name(i));
      granted.emplace_back(others, AcquireOptions{});
    }
    for (Pending& each : granted) leases.push_back(each.lease());
  }
  for (std::size_t i = 0; i < locks; ++i) {
    waiting_for.push_back(client.make_lock(name(i)));
    waiting.emplace_back(waiting_for.back(), AcquireOptions{});
  }
  const std::string last = zookeeper::lock_path(prefix, name(locks - 1), LockKind::lock);
  await("not all wait", [&] { return zk.children(last).value_or(std::vector<std::string>()).size() == 2; });
  proxy.drop();
  leases.clear();
  for (Pending& each : waiting) EXPECT_TRUE(each.lease().held());
}

// --- Hosts ---

// Far less than the two thirds of the session timeout for which the client library stays with a silent host.
constexpr auto patient = 30s;

class SilentHostTest : public ZooKeeperTest {
 protected:
  [[nodiscard]] static std::string url(const std::vector<std::uint16_t>& ports) {
    std::string hosts;
    for (const auto port : ports) hosts += (hosts.empty() ? "" : ",") + ("127.0.0.1:" + std::to_string(port));
    return "zookeeper://" + hosts + "?session_timeout=100s";
  }
  const rig::Listener silent;  // nobody ever accepts: the system does
  const rig::Listener silent_too;
};

// Which host a client begins with is drawn at random, so that each order occurs.
// Shows: hole zookeeper-unresponsive-server
TEST_F(SilentHostTest, OneHostAnswers_EachClientFindsIt) {
  const std::vector<std::uint16_t> lists[] = {{silent.port(), server.port()},
                                              {server.port(), silent.port()},
                                              {silent.port(), server.port(), silent_too.port()}};
  std::vector<Client> clients;
  std::vector<DistributedLock> locks;
  std::vector<Pending> acquires;
  for (int i = 0; i < 12; ++i) {
    clients.push_back(connect_patiently(url(lists[i % 3]), {.connect_timeout = 600ms}));
    locks.push_back(clients.back().make_lock("n" + std::to_string(i)));
  }
  for (DistributedLock& lock : locks) acquires.emplace_back(lock, AcquireOptions{.wait = patient});
  for (Pending& acquire : acquires) EXPECT_TRUE(acquire.lease().held());
}

// --- Identities and chroots ---

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
