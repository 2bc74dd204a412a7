// Strategies table and optimistic against a real server.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <dlock/dlock.hpp>

#include "backends/postgres/options.hpp"
#include "event_log.hpp"
#include "integration_test.hpp"
#include "postgres/shared_server.hpp"
#include "strategies.hpp"
#include "suite/wait.hpp"
#include "torture/rig/hang_guard.hpp"

namespace dlock::test {

namespace {

using namespace std::chrono_literals;
using conformance::Event;
using conformance::Outcome;
using conformance::Pending;
using conformance::take;
using postgres::Strategy;

// A lease that runs out after every test would have failed: what is free before then was freed.
constexpr auto long_lease = 10min;

class PostgresRowsTest : public OnSharedServer<testing::TestWithParam<Strategy>> {
 protected:
  PostgresRowsTest() {
    (void)client().initialize();
    server.run("TRUNCATE dlock.lease, dlock.optimistic");
  }

  [[nodiscard]] std::string strategy() const { return "strategy=" + std::string(postgres::to_string(GetParam())); }
  [[nodiscard]] Client client(ClientOptions options = {}) const {
    return connect_patiently(server.url(strategy()), options);
  }
  [[nodiscard]] bool optimistic() const { return GetParam() == Strategy::optimistic; }
  [[nodiscard]] std::string table() const { return optimistic() ? "dlock.optimistic" : "dlock.lease"; }
  [[nodiscard]] std::string held() const {
    return optimistic() ? "owner IS NOT NULL" : "expires_at > clock_timestamp()";
  }

  void await_in_server(const std::string& condition) const { await_in(server.admin_conninfo(), condition); }
  // The server does the waiting between two looks.
  static void await_in(const std::string& conninfo, const std::string& condition) {
    PostgresConnection sql(conninfo);
    sql.run("SET client_encoding = 'UTF8'");
    const auto give_up = std::chrono::steady_clock::now() + rig::hang_guard;
    while (sql.value("SELECT pg_sleep(0.01) IS NULL OR (" + condition + ")") != "t") {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up) << condition;
    }
  }
  void await_nothing_held() const { await_in_server("NOT EXISTS (SELECT FROM " + table() + " WHERE " + held() + ")"); }
  // A release of it is going to notify.
  [[nodiscard]] std::string marked(const std::string& name) const {
    return "EXISTS (SELECT FROM " + table() + " WHERE name = '" + name +
           "' AND waiting_until > clock_timestamp() + interval '5 s')";
  }
};

INSTANTIATE_TEST_SUITE_P(Strategies, PostgresRowsTest,
                         testing::ValuesIn(tested({Strategy::table, Strategy::optimistic})), strategy_name);

// --- Exclusion -------------------------------------------------------------------------------------------------------

// Who is inside, and the tokens of those who were.
class Room {
 public:
  void enter(const Lease& lease) {
    const std::scoped_lock lock(mutex_);
    // In this order: what has run out in between was held until the new one was granted, or it was not.
    const bool ours = lease.held();
    if (ours && inside_ != nullptr && inside_->held()) ++meetings_;
    if (ours && lease.token().value() <= last_token_) ++inversions_;
    last_token_ = std::max(last_token_, lease.token().value());
    inside_ = &lease;
  }
  void leave(const Lease& lease) {
    const std::scoped_lock lock(mutex_);
    if (inside_ == &lease) inside_ = nullptr;
    ++visits_;
  }
  [[nodiscard]] int meetings() const { return meetings_; }
  [[nodiscard]] int inversions() const { return inversions_; }
  [[nodiscard]] int visits() const { return visits_; }

 private:
  std::mutex mutex_;
  const Lease* inside_ = nullptr;
  std::uint64_t last_token_ = 0;
  int meetings_ = 0;
  int inversions_ = 0;
  int visits_ = 0;
};

class Crowd {
 public:
  explicit Crowd(std::vector<Client> clients) : clients_(std::move(clients)) {}

  // So many threads, each of which wants a lock so many times: waiting for it, giving up, or trying once.
  void run(int threads, int times) {
    std::vector<std::jthread> all;
    for (int i = 0; i < threads; ++i) {
      all.emplace_back([this, i, times] {
        std::mt19937 random(static_cast<unsigned>(i));
        for (int n = 0; n < times; ++n) want(i, random);
      });
    }
  }

  Event visited;
  std::map<std::string, Room> rooms{};
  std::atomic<int> unexpected{0};

 private:
  void want(int thread, std::mt19937& random) {
    const std::string name = names_[random() % names_.size()];
    DistributedLock lock = clients_[static_cast<std::size_t>(thread) % clients_.size()].make_lock(name);
    const AcquireOptions options{.wait = random() % 4 == 0 ? std::chrono::milliseconds(random() % 20) : rig::hang_guard,
                                 .lease = 2s};
    Pending pending(lock, options);
    const bool cancelled = random() % 4 == 0;
    if (cancelled) pending.cancel();
    const Outcome outcome = pending.get();
    if (!outcome.error) {
      Room& room = rooms.at(name);
      room.enter(outcome.lease);
      std::this_thread::yield();
      room.leave(outcome.lease);
      visited.set();
      return;
    }
    const bool impatient = options.wait < rig::hang_guard;
    if (cancelled && outcome.error == errc::cancelled) return;
    // Its time may be over while the service cannot be reached.
    if (impatient &&
        (outcome.error == errc::timed_out || outcome.error == errc::unavailable || outcome.error == errc::ambiguous)) {
      return;
    }
    ADD_FAILURE() << outcome.error.message();
    unexpected.fetch_add(1);
  }

  std::vector<Client> clients_;
  const std::vector<std::string> names_{"a", "b", "c"};
};

TEST_P(PostgresRowsTest, ExcludeWithGrowingTokensWhateverIsCancelled) {
  Crowd crowd = [this] {
    std::vector<Client> clients;
    clients.push_back(client());
    clients.push_back(client());
    return Crowd(std::move(clients));
  }();
  for (const char* const name : {"a", "b", "c"}) (void)crowd.rooms[name];
  crowd.run(16, 25);
  for (const auto& [name, room] : crowd.rooms) {
    EXPECT_EQ(room.meetings(), 0) << name;
    EXPECT_EQ(room.inversions(), 0) << name;
    EXPECT_GT(room.visits(), 0) << name;
  }
  await_nothing_held();
}

TEST_P(PostgresRowsTest, ExcludeWithGrowingTokensWhateverConnectionsAreKilled) {
  Crowd crowd = [this] {
    std::vector<Client> clients;
    clients.push_back(client());
    clients.push_back(client());
    return Crowd(std::move(clients));
  }();
  for (const char* const name : {"a", "b", "c"}) (void)crowd.rooms[name];
  {
    const std::jthread killer([&crowd, this](const std::stop_token& stop) {
      PostgresConnection sql(server.admin_conninfo());
      for (std::size_t visits = 10; !stop.stop_requested(); visits = crowd.visited.count() + 20) {
        while (!crowd.visited.wait_for(20ms, visits) && !stop.stop_requested()) {
        }
        sql.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'locker'");
      }
    });
    crowd.run(16, 20);
  }
  for (const auto& [name, room] : crowd.rooms) {
    EXPECT_EQ(room.meetings(), 0) << name;
    EXPECT_EQ(room.inversions(), 0) << name;
    EXPECT_GT(room.visits(), 0) << name;
  }
  await_nothing_held();
}

// --- Hand-over -------------------------------------------------------------------------------------------------------

// Time stands still for both clients, so that neither asks again by itself: whoever waits is woken, or waits for ever.
TEST_P(PostgresRowsTest, AHandOverNeedsNoPolling) {
  const auto clock = std::make_shared<ManualClock>();
  const Client one = client({.clock = clock});
  const Client other = client({.clock = clock});
  DistributedLock locks[] = {one.make_lock("x"), other.make_lock("x")};
  std::optional<Lease> lease = take(locks[0], {.lease = long_lease});
  for (std::size_t turn = 1; turn <= 20; ++turn) {
    Pending next(locks[turn % 2], {.lease = long_lease});
    await_in_server(marked("x"));
    ASSERT_FALSE(next.done());
    const FencingToken token = lease->token();
    EXPECT_TRUE(lease->release());
    lease = next.lease();
    EXPECT_GT(lease->token(), token);
    server.run("UPDATE " + table() + " SET waiting_until = '-infinity'");
  }
}

TEST_P(PostgresRowsTest, AReleaseThatNobodyWaitsForNotifiesNobody) {
  const Client locker = client();
  DistributedLock lock = locker.make_lock("x");
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(take(lock).release());
  EXPECT_EQ(server.value("SELECT waiting_until = '-infinity' FROM " + table() + " WHERE name = 'x'"), "t");
  EXPECT_EQ(server.value("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE '% listen'"), "0");
}

// --- Rows that somebody else has locked ------------------------------------------------------------------------------

class Renewals final : public Observer {
 public:
  explicit Renewals(std::string name) : name_(std::move(name)) {}
  void renewed(const RenewedEvent& event) override {
    if (event.name == name_) happened.set();
  }
  Event happened;

 private:
  const std::string name_;
};

TEST_P(PostgresRowsTest, ARowThatSomebodyHasLockedDelaysNoOtherLock) {
  const auto renewals = std::make_shared<Renewals>("other");
  const Client locker = client({.response_timeout = 3s, .observer = renewals});
  DistributedLock stuck = locker.make_lock("stuck");
  DistributedLock other = locker.make_lock("other");
  std::optional<Lease> stuck_lease = take(stuck, {.lease = long_lease});
  PostgresConnection foreign(server.admin_conninfo());
  foreign.run("BEGIN");
  ASSERT_EQ(foreign.value("SELECT name FROM " + table() + " WHERE name = 'stuck' FOR UPDATE"), "stuck");

  const Lease other_lease = take(other, {.lease = 6s});
  const Client second = client();
  DistributedLock same = second.make_lock("stuck");
  EXPECT_FALSE(same.try_acquire().has_value()) << "busy, and nobody waits for the row";
  Pending waiting(same, {});
  renewals->happened.wait("renewals go on", 3);
  EXPECT_TRUE(other_lease.held());
  for (const char* const name : {"new", "stuck too", "other too"}) {
    DistributedLock lock = locker.make_lock(name);
    EXPECT_TRUE(lock.try_acquire().has_value()) << name;
  }
  stuck_lease.reset();  // cannot be released just now; goes on in the background
  EXPECT_EQ(server.value("SELECT " + held() + " FROM " + table() + " WHERE name = 'stuck'"), "t");
  EXPECT_FALSE(waiting.done());
  foreign.run("ROLLBACK");
  EXPECT_TRUE(waiting.lease().held());
}

// Whoever wants to insert the same has to wait for it; but not for long, because renewals come behind.
TEST_P(PostgresRowsTest, ARowThatSomebodyIsInsertingDelaysNoOtherLockForLong) {
  const auto renewals = std::make_shared<Renewals>("held/a");
  const Client locker = client({.response_timeout = 10s, .observer = renewals});
  // On each of the client's connections.
  std::vector<Lease> leases;
  for (const char* const name : {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}) {
    DistributedLock lock = locker.make_lock(std::string("held/") + name);
    leases.push_back(take(lock, {.lease = 6s}));
  }
  PostgresConnection foreign(server.admin_conninfo());
  foreign.run("BEGIN; INSERT INTO " + table() + " (name, owner, holder, token, " +
              (optimistic() ? "version, lease_ms) VALUES ('stuck', 'foreign', '', 1, 1, 1000)"
                            : "expires_at) VALUES ('stuck', 'foreign', '', 1, 'infinity')"));
  DistributedLock stuck = locker.make_lock("stuck");
  Pending waiting(stuck, {});
  await_in_server("EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND usename = 'locker')");
  renewals->happened.wait("renewals go on", 3);
  for (const Lease& lease : leases) EXPECT_TRUE(lease.held());
  EXPECT_FALSE(waiting.done());
  foreign.run("ROLLBACK");
  EXPECT_TRUE(waiting.lease().held());
}

// To mark a lock that is waited for is to lock its row for a moment.
TEST_P(PostgresRowsTest, ReleasesDoNotFailBecauseWaitersArrive) {
  constexpr int names = 300;
  const Client holder = client();
  const Client waiter = client();
  std::vector<DistributedLock> held;
  std::vector<DistributedLock> wanted;
  for (int i = 0; i < names; ++i) {
    held.push_back(holder.make_lock(std::to_string(i)));
    wanted.push_back(waiter.make_lock(std::to_string(i)));
  }
  (void)take(wanted[0], {.lease = long_lease}).release();
  for (int round = 0; round < 3; ++round) {
    std::vector<Pending> granted;
    for (DistributedLock& lock : held) granted.emplace_back(lock, AcquireOptions{.lease = long_lease});
    std::vector<Lease> leases;
    for (Pending& each : granted) leases.push_back(each.lease());
    Event released;
    std::atomic<int> failures{0};
    std::vector<Pending> waiting;
    for (DistributedLock& lock : wanted) waiting.emplace_back(lock, AcquireOptions{.lease = long_lease});
    for (Lease& lease : leases) {
      lease.async_release([&](std::error_code error, bool was_ours) {
        if (error || !was_ours) failures.fetch_add(1);
        released.set();
      });
      std::this_thread::yield();
    }
    released.wait("releases", names);
    EXPECT_EQ(failures.load(), 0);
    for (Pending& each : waiting) (void)each.lease().release();
  }
}

// --- Names -----------------------------------------------------------------------------------------------------------

TEST_P(PostgresRowsTest, ANameThatTheDatabaseHasNoCharactersForFailsAlone) {
  const std::string database = "latin_" + std::string(postgres::to_string(GetParam()));
  // An encoding of one's own is only to be had with a template of this name.
  if (server.value("SELECT count(*) FROM pg_database WHERE datname = 'template0'") == "0") {
    server.run("CREATE DATABASE template0 TEMPLATE template1");
  }
  server.run("CREATE DATABASE " + database + " OWNER locker ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'" +
             " TEMPLATE template0");
  std::string url = server.url(strategy());
  url.replace(url.find("/locks"), std::string("/locks").size(), "/" + database);
  const Client locker = connect_patiently(url);
  ASSERT_FALSE(locker.initialize().empty());
  DistributedLock first = locker.make_lock("caf\xc3\xa9");
  take(first).release();

  // All of them are asked for together, when the answer to the first one comes.
  std::vector<DistributedLock> locks;
  std::vector<Pending> all;
  for (int i = 0; i < 64; ++i) locks.push_back(locker.make_lock("\xc3\xa9" + std::to_string(i)));
  locks.push_back(locker.make_lock("\xe6\x97\xa5\xe6\x9c\xac"));
  for (int i = 64; i < 100; ++i) locks.push_back(locker.make_lock("\xc3\xa9" + std::to_string(i)));
  server.freeze();
  for (DistributedLock& lock : locks) all.emplace_back(lock, AcquireOptions{});
  server.thaw();
  std::vector<Outcome> outcomes;
  for (Pending& each : all) outcomes.push_back(each.get());
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (i == 64) {
      EXPECT_EQ(outcomes[i].error, errc::invalid_argument) << outcomes[i].error.message();
    } else {
      EXPECT_FALSE(outcomes[i].error) << i << ": " << outcomes[i].error.message();
    }
  }
  PostgresConnection sql(server.admin_conninfo(database));
  EXPECT_EQ(sql.value("SELECT count(*) FROM " + table() + " WHERE " + held()), "100");

  // Who waits for such a name is woken, too.
  const Client waiter = connect_patiently(url, {.clock = std::make_shared<ManualClock>()});
  DistributedLock same = waiter.make_lock(locks[5].name());
  Pending waiting(same, {.lease = long_lease});
  await_in(server.admin_conninfo(database), marked(locks[5].name()));
  ASSERT_FALSE(waiting.done());
  EXPECT_TRUE(outcomes[5].lease.release());
  EXPECT_TRUE(waiting.lease().held());
}

}  // namespace

}  // namespace dlock::test
