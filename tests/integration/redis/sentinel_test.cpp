// redis-sentinel://: a master, two replicas and three sentinels, and what may happen to them.
#include "redis/redis_test.hpp"
#include "tests/support/redis_sentinel.hpp"

namespace dlock::test {

namespace {

using Severity = Finding::Severity;

// On a busy machine a master may not answer for seconds. Sentinels count it as down where a test says so, and no
// sooner.
constexpr int never_ms = 3'600'000;
constexpr int soon_ms = 1000;

class SentinelTest : public ::testing::Test {
 protected:
  explicit SentinelTest(const SentinelServiceConfig& config = {.down_after_ms = never_ms}) : service(config) {}

  void TearDown() override {
    if (HasFailure())
      std::cout << "unsettled: " << service.unsettled() << '\n' << service.sentinel(0).process().output();
  }

  [[nodiscard]] Client client(const std::string& parameters = {}, ClientOptions options = {}) const {
    return connect_patiently(service.url(parameters), std::move(options));
  }
  [[nodiscard]] RedisServer& first() { return service.server(0); }
  void await_locks_at_master(const Client& client) {
    await("it does not come to the new master", [&] { return locks_at(client, service.master(), "another"); });
  }
  void expect_too_few_replicas(const Client& client) { EXPECT_EQ(try_error(client, "kept"), errc::unavailable); }
  // Until that happens, clients that ask for all replicas get no lock.
  void await_all_replicas(const Client& client) {
    std::error_code error;
    await("it does not recover", [&] { return client.make_lock("kept").try_acquire({}, error).has_value(); });
  }

  SentinelService service;
};

// --- A holder and a waiter go on -------------------------------------------------------------------------------------

struct Failover {
  const char* name;
  void (*happen)(SentinelService& service);
  const char* parameters = "";
  Duration lease = outlasting;
};

const Failover failovers[] = {
    {"Planned", [](SentinelService& service) { service.fail_over(); }},
    {"MasterKilled",
     [](SentinelService& service) {
       service.set_down_after(soon_ms);
       service.server(0).kill();
       service.await_failovers(1);
     }},
    // It would go on granting locks for ten seconds.
    {"MasterFrozenAndThawed",
     [](SentinelService& service) {
       service.set_down_after(soon_ms);
       service.server(0).freeze();
       service.await_failovers(1);
       service.server(0).thaw();
     }},
    // Sentinels make a former master a replica after ten seconds or so; until then there are too few replicas.
    {"MasterKilledAllReplicasAcknowledge",
     [](SentinelService& service) {
       service.set_down_after(soon_ms);
       service.server(0).kill();
       service.await_failovers(1);
       service.set_down_after(never_ms);
       service.server(0).start();
     },
     "replicas_ack=all", long_lease},
};

class FailoverTest : public SentinelTest, public ::testing::WithParamInterface<Failover> {};

// Shows: hole redis-sentinel
// Hazard: H22 Sentinel: an old master grants locks; the client asks the sentinels every second
TEST_P(FailoverTest, HolderAndWaiter_GoOnAtTheNewMaster) {
  expect_to_go_on([this](ClientOptions options) { return client(GetParam().parameters, std::move(options)); },
                  [this]() -> RedisServer& { return service.master(); },
                  [this] {
                    GetParam().happen(service);
                    EXPECT_FALSE(service.is_master(first()));
                  },
                  GetParam().lease);
}

INSTANTIATE_TEST_SUITE_P(, FailoverTest, ::testing::ValuesIn(failovers),
                         [](const auto& row) { return row.param.name; });

// --- Sentinels -------------------------------------------------------------------------------------------------------

// Hazard: H22 Sentinel: an old master grants locks; the client asks the sentinels every second
TEST_F(SentinelTest, OneSentinelKilled_ClientsFollowTheOthers) {
  const std::string only_first = SentinelService::url_at({service.sentinel(0).port()});
  const Client learning = connect_patiently(only_first);  // of the others, which the URL does not name
  const auto log = std::make_shared<EventLog>();
  const Client idle = client({}, {.observer = log});
  EXPECT_EQ(learning.capabilities().backend, "redis-sentinel");
  EXPECT_TRUE(locks_at(learning, first(), "first"));
  EXPECT_TRUE(locks_at(idle, first(), "first"));
  service.sentinel(0).kill();
  const Client late = client();
  EXPECT_TRUE(locks_at(late, first(), "first"));
  const auto connected = log->connected.count();
  service.fail_over();
  log->connected.wait("the idle client does not come to the new master", connected + 1);
  for (const Client* each : {&learning, &idle, &late}) await_locks_at_master(*each);
}

TEST_F(SentinelTest, Diagnosis_SaysWhatAFailoverWouldCost) {
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

TEST_F(SentinelTest, AllReplicas_AcknowledgeAGrantOrThereIsNone) {
  const Client patient = client("replicas_ack=all");
  const Client one = client("replicas_ack=all", impatient());
  Lease lease = take(patient, "kept", {.lease = long_lease});
  for (std::size_t i = 1; i <= 2; ++i) EXPECT_EQ(value(service.server(i), "kept"), value(first(), "kept"));
  EXPECT_TRUE(lease.release());
  service.server(2).freeze();
  expect_too_few_replicas(one);
  // A sentinel that is reset knows fewer replicas; they are not enough.
  (void)service.sentinel(0).command({"SENTINEL", "RESET", "mymaster"});
  expect_too_few_replicas(one);
  expect_too_few_replicas(client("replicas_ack=all", impatient()));
  service.server(2).thaw();
  await_all_replicas(one);
}

TEST_F(SentinelTest, ReplicaKilled_StillCounts) {
  service.server(2).kill();
  await("the master does not notice", [&] { return first().info("replication", "connected_slaves") == "1"; });
  expect_too_few_replicas(client("replicas_ack=all", impatient()));
  EXPECT_TRUE(take(client("replicas_ack=1"), "kept").release());
}

class LoneServerTest : public SentinelTest {
 protected:
  LoneServerTest() : SentinelTest({.replicas = 0, .sentinels = 1, .down_after_ms = never_ms}) {}
};

TEST_F(LoneServerTest, WrongUrls_AreErrors) {
  const std::string sentinel = service.sentinel(0).address();
  expect_too_few_replicas(client("replicas_ack=all", impatient()));
  EXPECT_TRUE(
      try_error(connect_patiently("redis-sentinel://" + first().address() + "?service_name=mymaster", impatient())));
  EXPECT_TRUE(try_error(connect_patiently("redis://" + sentinel, impatient())));
  const Client other = connect_patiently("redis-sentinel://" + sentinel + "?service_name=yourmaster");
  expect_failure(errc::invalid_argument, "service_name", [&] { (void)other.make_lock("x").try_acquire(); });
}

}  // namespace

}  // namespace dlock::test
