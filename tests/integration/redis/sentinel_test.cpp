// redis-sentinel://: a master, two replicas and three sentinels, and what may happen to them.
#include "redis/redis_test.hpp"
#include "tests/support/redis_sentinel.hpp"

namespace dlock::test {

namespace {

using Severity = Finding::Severity;

class SentinelTest : public ::testing::Test {
 protected:
  explicit SentinelTest(const SentinelServiceConfig& config = {}) : service(config) {}

  [[nodiscard]] Client client(const std::string& parameters = {}, ClientOptions options = {}) const {
    return connect_patiently(service.url(parameters), std::move(options));
  }
  [[nodiscard]] static std::string value(RedisServer& server, const std::string& name) {
    return server.command({"GET", redis::keys_of("dlock:", name).lock}).text;
  }
  static void await_waiters(RedisServer& server, const std::string& name, std::int64_t count) {
    await("waiters do not arrive at " + name, [&] {
      return server.command({"ZCARD", redis::keys_of("dlock:", name).queue}).integer == count;
    });
  }
  // It has a lock there.
  static bool locks_at(const Client& client, RedisServer& server, const std::string& name) {
    DistributedLock lock = client.make_lock(name);
    std::error_code error;
    const auto lease = lock.try_acquire({.lease = long_lease}, error);
    return lease && value(server, name).find(lease->owner().to_string()) != std::string::npos;
  }
  // A holder and a waiter of the same lock, and what is done to the service. The holder keeps its lock, and the waiter
  // is served by the new master.
  template <class Trouble>
  void expect_to_go_on(Trouble&& trouble, const std::string& parameters = {}, Duration lease_time = 12s) {
    const auto log = std::make_shared<EventLog>();
    const Client holding = client(parameters, {.lease = lease_time, .observer = log});
    const Client waiting = client(parameters);
    DistributedLock held = holding.make_lock("held");
    DistributedLock wanted = waiting.make_lock("held");
    Lease lease = take(held);
    Pending next(wanted, {});
    await_waiters(*service.servers().front(), "held", 1);
    await("the replicas do not have the lock", [&] { return service.server(0).replicated_to(2); });
    trouble();
    RedisServer& master = service.master();
    EXPECT_FALSE(&master == service.servers().front().get());
    await("the waiter does not come to the new master", [&] {
      return master.command({"ZCARD", redis::keys_of("dlock:", "held").queue}).integer == 1;
    });
    await("the holder does not come to the new master", [&] { return locks_at(holding, master, "another"); });
    await_renewal(lease);
    EXPECT_TRUE(lease.held());
    EXPECT_EQ(log->losses.count(), 0U);
    const FencingToken earlier = lease.token();
    EXPECT_TRUE(lease.release());
    EXPECT_GT(next.lease().token(), earlier);
  }

  SentinelService service;
};

TEST_F(SentinelTest, LocksAreTheMasters) {
  const Client one = client();
  EXPECT_EQ(one.capabilities().backend, "redis-sentinel");
  EXPECT_TRUE(locks_at(one, service.server(0), "first"));
}

TEST_F(SentinelTest, APlannedFailoverIsFollowedByHoldersAndWaiters) {
  expect_to_go_on([&] { service.fail_over(); });
}

TEST_F(SentinelTest, SoIsTheDeathOfTheMaster) {
  expect_to_go_on([&] {
    service.server(0).kill();
    service.await_failovers(1);
  });
}

// It would go on granting locks for ten seconds.
TEST_F(SentinelTest, AMasterThatWasStoppedAndGoesOnIsNotGoneBackTo) {
  expect_to_go_on([&] {
    service.server(0).freeze();
    service.await_failovers(1);
    service.server(0).thaw();
  });
}

TEST_F(SentinelTest, PollingWaitersFollow) {
  const Client holding = client();
  const Client waiting = client("strategy=poll");
  DistributedLock held = holding.make_lock("held");
  DistributedLock wanted = waiting.make_lock("held");
  Lease lease = take(held, {.lease = long_lease});
  Pending next(wanted, {});
  service.fail_over();
  EXPECT_FALSE(service.is_master(service.server(0)));
  for (const Client* each : {&holding, &waiting}) {
    await("it does not come to the new master", [&] { return locks_at(*each, service.master(), "another"); });
  }
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(next.lease().held());
}

TEST_F(SentinelTest, AWaiterKeepsItsDeadlineWhileThereIsNoMaster) {
  const Client waiting = client();
  DistributedLock lock = waiting.make_lock("held");
  EXPECT_TRUE(take(lock).release());
  for (const auto& server : service.servers()) server->kill();
  const auto start = std::chrono::steady_clock::now();
  std::error_code error;
  EXPECT_FALSE(lock.acquire({.wait = 2s}, error).has_value());
  EXPECT_EQ(error, errc::unavailable) << error.message();
  EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
}

TEST_F(SentinelTest, TheOtherSentinelsDoWhereOneIsGone) {
  service.sentinel(0).kill();
  const Client one = client();
  EXPECT_TRUE(locks_at(one, service.server(0), "first"));
  service.fail_over();
  await("it does not find the new master", [&] { return locks_at(one, service.master(), "second"); });
}

TEST_F(SentinelTest, AnIdleClientFollowsThePlannedFailoverThoughASentinelIsGone) {
  const auto log = std::make_shared<EventLog>();
  const Client one = client({}, {.observer = log});
  EXPECT_TRUE(locks_at(one, service.server(0), "first"));
  service.sentinel(0).kill();
  const auto connected = log->connected.count();
  service.fail_over();
  log->connected.wait("it does not come to the new master", connected + 1);
  EXPECT_TRUE(locks_at(one, service.master(), "second"));
}

TEST_F(SentinelTest, ASentinelThatIsResetDoesNotMakeFewerReplicasEnough) {
  const Client one = client("replicas_ack=all", impatient());
  EXPECT_TRUE(locks_at(one, service.server(0), "first"));
  service.server(2).freeze();
  (void)service.sentinel(0).command({"SENTINEL", "RESET", "mymaster"});
  const Client other = client("replicas_ack=all", impatient());
  for (const Client* each : {&one, &other}) {
    DistributedLock lock = each->make_lock("kept");
    std::error_code error;
    EXPECT_FALSE(lock.try_acquire({}, error).has_value());
    EXPECT_EQ(error, errc::unavailable) << error.message();
  }
}

TEST_F(SentinelTest, SentinelsThatTheUrlDoesNotNameAreLearnt) {
  const std::string url =
      "redis-sentinel://127.0.0.1:" + std::to_string(service.sentinel(0).port()) + "?service_name=mymaster";
  const Client one = connect_patiently(url);
  EXPECT_TRUE(locks_at(one, service.server(0), "first"));
  service.sentinel(0).kill();
  service.fail_over();
  await("it does not find the new master", [&] { return locks_at(one, service.master(), "second"); });
}

TEST_F(SentinelTest, AHolderHearsOfANewMasterThatTheOldOneDoesNotKnowOf) {
  const auto log = std::make_shared<EventLog>();
  const Client holding = client({}, {.lease = long_lease, .observer = log});
  DistributedLock lock = holding.make_lock("held");
  const Lease lease = take(lock);
  const auto connected = log->connected.count();
  // Nothing is asked of the master before a third of the lease has gone.
  service.fail_over();
  log->connected.wait("it does not hear of the new master", connected + 1);
  EXPECT_TRUE(lease.held());
}

TEST_F(SentinelTest, DoctorSaysWhatAFailoverWouldCost) {
  const Client one = client();
  const auto findings = one.diagnose();
  EXPECT_TRUE(mentions(findings, Severity::ok, "3 of 3 sentinels answer"));
  EXPECT_TRUE(mentions(findings, Severity::warning, "min-replicas-to-write is 0, with 2 replicas"));
  EXPECT_TRUE(mentions(findings, Severity::ok, "a master with 2 replicas"));
  for (const auto& server : service.servers()) (void)server->command({"CONFIG", "SET", "min-replicas-to-write", "2"});
  EXPECT_FALSE(mentions(one.diagnose(), Severity::warning, "min-replicas"));
  service.sentinel(1).kill();
  EXPECT_TRUE(mentions(one.diagnose(), Severity::warning, "2 of 3 sentinels answer"));
}

// --- All replicas ----------------------------------------------------------------------------------------------------

TEST_F(SentinelTest, AllReplicasAcknowledgeAGrantOrThereIsNone) {
  const Client one = client("replicas_ack=all", impatient());
  DistributedLock lock = one.make_lock("kept");
  Lease lease = take(lock, {.lease = long_lease});
  for (std::size_t i = 1; i <= 2; ++i) EXPECT_EQ(value(service.server(i), "kept"), value(service.server(0), "kept"));
  EXPECT_TRUE(lease.release());
  service.server(2).freeze();
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::unavailable) << error.message();
  service.server(2).thaw();
  await("it does not recover", [&] { return lock.try_acquire({}, error).has_value(); });
}

TEST_F(SentinelTest, AReplicaThatIsDownCountsAllTheSame) {
  service.server(2).kill();
  await("the master does not notice", [&] { return service.server(0).info("replication", "connected_slaves") == "1"; });
  const Client one = client("replicas_ack=all", impatient());
  DistributedLock lock = one.make_lock("kept");
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::unavailable) << error.message();
  const Client easy = client("replicas_ack=1");
  DistributedLock easily = easy.make_lock("kept");
  EXPECT_TRUE(take(easily).release());
}

TEST_F(SentinelTest, AllReplicasKeepALockThroughTheDeathOfTheMaster) {
  expect_to_go_on(
      [&] {
        service.server(0).kill();
        service.await_failovers(1);
        service.server(0).start();  // without it there are too few replicas
      },
      "replicas_ack=all", 30s);  // sentinels make a former master a replica after ten seconds or so
}

class LoneServerTest : public SentinelTest {
 protected:
  LoneServerTest() : SentinelTest({.replicas = 0, .sentinels = 1}) {}
};

TEST_F(LoneServerTest, NoReplicaIsTooFewForAll) {
  const Client one = client("replicas_ack=all", impatient());
  DistributedLock lock = one.make_lock("kept");
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::unavailable) << error.message();
}

TEST_F(LoneServerTest, AServiceThatNoSentinelKnowsIsNamed) {
  const Client one = connect_patiently("redis-sentinel://127.0.0.1:" + std::to_string(service.sentinel(0).port()) +
                                       "?service_name=yourmaster");
  DistributedLock lock = one.make_lock("any");
  try {
    (void)lock.try_acquire();
    ADD_FAILURE() << "there is no such service";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), errc::invalid_argument);
    EXPECT_NE(error.detail().find("service_name"), std::string::npos) << error.detail();
  }
}

TEST_F(LoneServerTest, ASentinelIsNoServerAndAServerNoSentinel) {
  const Client one = connect_patiently(
      "redis-sentinel://127.0.0.1:" + std::to_string(service.server(0).port()) + "?service_name=mymaster", impatient());
  DistributedLock lock = one.make_lock("any");
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  EXPECT_NE(error, std::error_code());
  const Client other =
      connect_patiently("redis://127.0.0.1:" + std::to_string(service.sentinel(0).port()), impatient());
  DistributedLock others = other.make_lock("any");
  EXPECT_FALSE(others.try_acquire({}, error).has_value());
  EXPECT_NE(error, std::error_code());
}

class LockedUpTest : public SentinelTest {
 protected:
  LockedUpTest()
      : SentinelTest({.replicas = 0,
                      .sentinels = 1,
                      .server = {.password = "the-servers", .lines = {"masterauth the-servers"}},
                      .sentinel_password = "the-sentinels"}) {}
  [[nodiscard]] std::string url(const std::string& password, const std::string& sentinel_password) const {
    return "redis-sentinel://:" + password + "@127.0.0.1:" + std::to_string(service.sentinels().front()->port()) +
           "?service_name=mymaster" + (sentinel_password.empty() ? "" : "&sentinel_password=") + sentinel_password;
  }
};

TEST_F(LockedUpTest, ServersAndSentinelsHavePasswordsOfTheirOwn) {
  const Client one = connect_patiently(url("the-servers", "the-sentinels"));
  DistributedLock lock = one.make_lock("any");
  EXPECT_TRUE(take(lock).release());
}

TEST_F(LockedUpTest, AWrongPasswordIsDeniedAndNotShown) {
  for (const auto& [password, sentinel_password] : std::vector<std::pair<std::string, std::string>>{
           {"the-servers", "wrong-one"}, {"wrong-one", "the-sentinels"}, {"the-servers", ""}}) {
    const Client one = connect_patiently(url(password, sentinel_password));
    DistributedLock lock = one.make_lock("any");
    try {
      (void)lock.try_acquire();
      ADD_FAILURE() << "it was let in";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), errc::access_denied) << error.detail();
      EXPECT_EQ(error.detail().find("wrong-one"), std::string::npos) << error.detail();
      EXPECT_EQ(error.detail().find("the-servers"), std::string::npos) << error.detail();
    }
  }
}

}  // namespace

}  // namespace dlock::test
