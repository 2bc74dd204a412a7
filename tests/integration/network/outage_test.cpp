// A server that stands still: connections stay, nothing is answered, and what was sent is carried out later. One that
// is killed, or shut down in good order, and comes back with its data. And servers that are not what they should be.
#include "network/room.hpp"

namespace dlock::test {

namespace {

class OutageTest : public Room {
 protected:
  using End = void (Service::*)();
  static constexpr std::pair<const char*, End> ends[] = {{"crash", &Service::kill}, {"shutdown", &Service::stop}};
  // A lease that is renewed soon, and outlasts the start of a server on a busy machine.
  static constexpr Duration outlasting = 18s;

  // New connections are refused until it serves.
  void end(End how) {
    proxy.refuse(true);
    (service.*how)();
  }
  void start() {
    service.start();
    heal();
  }
};

// Hazard: a lost answer: repeat, or undo
TEST_P(OutageTest, FrozenBeforeTheFirstConnection_RequestsEndInTime) {
  Contender own(steady(impatient()), "frozen");
  service.freeze();
  const auto start = std::chrono::steady_clock::now();
  std::error_code error;
  EXPECT_FALSE(own.lock.try_acquire({}, error).has_value());
  expect_unanswered(error);
  expect_failure(errc::unavailable, "", [&] { own.client.ping(700ms); });
  EXPECT_TRUE(mentions(own.client.diagnose(), Finding::Severity::error, ""));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 2 * far_too_long);
  service.thaw();
  own.client.ping(1min);
}

TEST_P(OutageTest, FrozenAndNoCloseTimeout_ClientsAreDestroyedAtOnce) {
  ClientOptions options = impatient(service_kind().short_lease);
  options.close_timeout = 0s;
  std::optional<Client> client(steady(options));
  std::vector<Lease> leases;
  // With the default timeout they would take longer than far_too_long.
  for (int i = 0; i < 10; ++i) leases.push_back(client->make_lock("frozen" + std::to_string(i)).acquire());
  service.freeze();
  const auto start = std::chrono::steady_clock::now();
  leases.clear();
  client.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  service.thaw();
  expect_free_and_clean("frozen9");
}

// The client hears of nothing but silence, and of nothing at all while no server is there.
// Shows: loss-signal, hole zookeeper-unresponsive-server
// Hazard: a paused holder: a local timer
TEST_P(OutageTest, LongerThanTheLease_IsALoss) {
  struct Outage {
    const char* name;
    std::function<void()> begin;
    std::function<void()> end;
  };
  const Outage outages[] = {{"frozen", [this] { service.freeze(); }, [this] { service.thaw(); }},
                            {"killed", [this] { end(&Service::kill); }, [this] { start(); }}};
  for (const Outage& outage : outages) {
    SCOPED_TRACE(outage.name);
    Contender ours(disturbed({.lease = service_kind().short_lease}), "long");
    const Lease lease = take(ours.lock);
    const LossEvent loss(lease);
    outage.begin();
    loss.event().wait("the loss is not signalled");
    EXPECT_FALSE(lease.held());
    outage.end();
    Contender other(steady(), "long");
    EXPECT_GT(take(other.lock).token(), lease.token());
    EXPECT_TRUE(take(ours.lock).held());
    EXPECT_FALSE(lease.held());
  }
}

// Shows: one-holder
TEST_P(OutageTest, ShortFreeze_LosesNoLock) {
  const auto log = std::make_shared<EventLog>();
  Contender own(steady({.lease = 9s, .observer = log}), "frozen");
  Contender other(steady(impatient()), "frozen");
  warm_up(other.client);
  Lease lease = take(own.lock);
  service.freeze();
  std::error_code error;
  (void)other.lock.acquire({.wait = 1s}, error);  // as long as this takes
  service.thaw();
  await_renewal(lease);
  EXPECT_TRUE(lease.held());
  EXPECT_EQ(log->losses.count(), 0U);
  EXPECT_TRUE(lease.release());
  await_no_residue("frozen");
}

// Shows: one-holder, hole postgresql-connection-ends
TEST_P(OutageTest, Restart_IsALossOrKeepsTheLockAndServesTheWaiter) {
  for (const auto& [name, how] : ends) {
    SCOPED_TRACE(name);
    const bool renews = steady().capabilities().lease_kind == LeaseKind::per_lock;
    Contender ours(disturbed({.lease = renews ? outlasting : patient().lease}), "held");
    Contender other(disturbed(), "held");
    Contender holder(disturbed(), "waited-for");
    DistributedLock awaited = other.client.make_lock("waited-for");
    Lease lease = take(ours.lock);
    Lease former = take(holder.lock);
    const LossEvent loss(lease);
    Pending waiting(awaited, {});
    await_waiter("waited-for");
    end(how);
    if (ends_with_connection()) {
      loss.event().wait("the loss is not signalled");
      start();
      EXPECT_FALSE(lease.release());
      EXPECT_GT(take(ours.lock).token(), lease.token());
    } else {
      EXPECT_TRUE(lease.held());
      start();
      EXPECT_FALSE(waiting.done());
      std::error_code error;
      (void)former.release(error);  // may be too early for its connection; the release is repeated then
      EXPECT_EQ(steady().inspect("held").token, lease.token());
      await("the other client does not come back", [&] {
        EXPECT_FALSE(other.lock.try_acquire({}, error).has_value());
        return !error;
      });
      if (renews) await_renewal(lease);
      EXPECT_TRUE(lease.held());
      EXPECT_FALSE(loss.happened());
      EXPECT_TRUE(lease.release());
    }
    Lease next = waiting.lease();
    EXPECT_FALSE(former.held());
    EXPECT_GT(next.token(), former.token());
    EXPECT_TRUE(next.release());
    for (const char* const each : {"held", "waited-for"}) await_no_residue(each);
  }
}

TEST_P(OutageTest, ServerThatIsDown_IsOutlastedByAWait) {
  end(&Service::stop);
  Contender ours(disturbed(impatient()), "patient");
  Pending waiting(ours.lock, {});
  std::error_code error;
  EXPECT_FALSE(ours.lock.try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::unavailable);
  EXPECT_TRUE(mentions(ours.client.diagnose(), Finding::Severity::error, ""));
  EXPECT_FALSE(waiting.done());
  start();
  EXPECT_TRUE(waiting.lease().held());
}

INSTANTIATE_TEST_SUITE_P(, OutageTest, ::testing::ValuesIn(tested_strategies()), Room::strategy_name);

// --- Servers that are broken, or mean harm ---

// Whatever they say: no crash, an error by the deadline, bounded memory where that is up to us.
class HostileServerTest : public ::testing::TestWithParam<Hostility> {
 protected:
  static void expect_errors_in_time(const ScriptedServer& server, const std::string& strategy) {
    const auto start = std::chrono::steady_clock::now();
    {
      const Client client =
          connect_patiently(service_kind().hostile_url(server.port()) + service_kind().parameters(strategy),
                            {.response_timeout = 300ms, .connect_timeout = 300ms, .close_timeout = 300ms});
      DistributedLock lock = client.make_lock("hostile");
      std::error_code error;
      EXPECT_FALSE(lock.try_acquire({}, error).has_value());
      EXPECT_TRUE(is_error_of_hostile_server(error)) << "try: " << error.message();
      (void)lock.acquire({.wait = 400ms}, error);
      EXPECT_TRUE(is_error_of_hostile_server(error)) << "wait: " << error.message();
      EXPECT_THROW((void)client.inspect("hostile"), Error);
      EXPECT_THROW((void)client.list(), Error);
      EXPECT_THROW((void)client.break_lock("hostile"), Error);
      EXPECT_TRUE(mentions(client.diagnose(), Finding::Severity::note, ""));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, 3 * far_too_long);
    const auto counters = server.counters();
    EXPECT_GE(counters.accepted, 1U);
    EXPECT_LT(counters.sent, service_kind().most_accepted * counters.accepted);
  }
};

// Shows: deadlines
TEST_P(HostileServerTest, FirstAnswer_EndsAsAnErrorByTheDeadline) {
  const ScriptedServer server(service_kind().greets ? blunt(GetParam().answer) : rude(GetParam().answer));
  expect_errors_in_time(server, service_kind().strategies.front());
}

TEST_P(HostileServerTest, AnswerAfterLogin_EndsAsAnErrorByTheDeadline) {
  for (const std::string& strategy : tested_strategies()) {
    const ScriptedServer server(service_kind().polite_until_asked(GetParam().answer));
    expect_errors_in_time(server, strategy);
  }
}

std::vector<Hostility> hostilities() {
  std::vector<Hostility> all = {
      {"http", {.bytes = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", .close = true}},
      {"garbage", {.bytes = std::string("\x00\xff\x15\x03\x01\x00\x02\x02\x28 what?\r\n", 18)}},
      {"silence", {}},
      {"end", {.close = true}},
  };
  all.insert(all.end(), service_kind().hostilities.begin(), service_kind().hostilities.end());
  return all;
}

INSTANTIATE_TEST_SUITE_P(, HostileServerTest, ::testing::ValuesIn(hostilities()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace

}  // namespace dlock::test
