// Locks of several holders, with strategy=table, on a real server: one row, whose newest version decides.
#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backends/postgres/sql/statements.hpp"
#include "event_log.hpp"
#include "postgres/postgres_test.hpp"

namespace dlock::test {

namespace {

constexpr int release = 0;
constexpr int acquire = 2;

// One request of the statement.
struct Change {
  std::string name;
  std::string owner;
  int what = acquire;
  int weight = 1;
  int permits = 2;
  int mark_ms = 0;
};

class PostgresSharingTest : public PostgresTest {
 protected:
  PostgresSharingTest() { (void)client().initialize(); }

  [[nodiscard]] Client client(ClientOptions options = patient()) const { return steady(std::move(options)); }
  // A session of its own, with the statement for semaphores prepared.
  [[nodiscard]] std::unique_ptr<PostgresConnection> session() const {
    auto sql = std::make_unique<PostgresConnection>(server.admin_conninfo());
    std::string statement =
        postgres::sharing_statements("dlock", postgres::Durability::async, LockKind::semaphore).change.sql;
    // It waits for a row for a quarter of a second; a busy machine may need longer to let the row go.
    const std::string brief = "'250'";
    statement.replace(statement.find(brief), brief.size(), "'60000'");
    sql->run("PREPARE change AS " + statement);
    return sql;
  }
  // For each: "yes", "no", "again", or with how many permits others use it.
  static std::vector<std::string> ask(PostgresConnection& sql, const std::vector<Change>& changes) {
    std::array<std::string, 8> columns;
    for (const Change& each : changes) {
      const std::array<std::string, 8> cells = {each.name,
                                                each.owner,
                                                std::to_string(each.what),
                                                "60000",
                                                "holder",
                                                std::to_string(each.weight),
                                                std::to_string(each.permits),
                                                std::to_string(each.mark_ms)};
      for (std::size_t i = 0; i < cells.size(); ++i) columns[i] += (columns[i].empty() ? "" : ",") + cells[i];
    }
    std::string arguments;
    for (const std::string& column : columns) arguments += "'{" + column + "}', ";
    const PostgresReply reply = sql.query("EXECUTE change(" + arguments + "'channel')");
    if (reply.is_error()) throw std::runtime_error(reply.error);
    std::vector<std::string> answers(changes.size());
    for (const auto& row : reply.rows) {
      const std::string done = row.at(1).value_or("again");
      const auto number = static_cast<std::size_t>(std::stoi(row.at(0).value()));
      answers.at(number - 1) = row.at(3).value_or(done == "t" ? "yes" : done == "f" ? "no" : done);
      EXPECT_EQ(done == "t" && changes[number - 1].what == acquire && std::stoll(row.at(2).value_or("0")) <= 0, false);
    }
    return answers;
  }
  using Answers = std::vector<std::string>;
};

// --- The statement ---------------------------------------------------------------------------------------------------

// It retries after half of the time, by its own clock.
TEST_F(PostgresSharingTest, WriterThatRetries_KeepsItsMark) {
  const auto sql = session();
  EXPECT_EQ(ask(*sql, {{"x", "a", acquire, 1, 9}, {"x", "w", acquire, 9, 9, 60000}}), (Answers{"yes", "no"}));
  server.run("UPDATE dlock.lease_sem SET marked_until = clock_timestamp() + interval '32 s'");
  EXPECT_EQ(ask(*sql, {{"x", "w", acquire, 9, 9, 60000}}), Answers{"no"});
  EXPECT_EQ(server.value("SELECT marked_until > clock_timestamp() + interval '40 s' FROM dlock.lease_sem"), "t");
}

TEST_F(PostgresSharingTest, TokensOfOneStatement_DifferAndGrow) {
  const auto sql = session();
  server.run("INSERT INTO dlock.lease_sem (name, token, permits, holders) VALUES ('x', 9000000000000000, 1, '{}')");
  EXPECT_EQ(ask(*sql, {{"x", "a"}, {"x", "b"}}), (Answers{"yes", "yes"}));
  EXPECT_EQ(server.value("SELECT token FROM dlock.lease_sem"), "9000000000000002");
  EXPECT_EQ(server.value("SELECT string_agg(value ->> 1, ',' ORDER BY key) FROM dlock.lease_sem, jsonb_each(holders)"),
            "9000000000000001,9000000000000002");
}

// Permits are counted in the newest version of the row, after the wait for another change of it.
TEST_F(PostgresSharingTest, ManyAtOnce_GetNoMoreThanAllPermits) {
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const auto sql = session();
      const std::string owner = "owner-" + std::to_string(i);
      for (int round = 0; round < 150; ++round) {
        // A name that is new for all of them, too.
        const std::string name = round < 50 ? "fresh-" + std::to_string(round) : "x";
        if (ask(*sql, {{name, owner, acquire, 1, 3}}) != Answers{"yes"}) continue;
        if (name == "x") {
          const int now = inside.fetch_add(1) + 1;
          if (now > 3) wrong.fetch_add(1);
          for (int before = most; before < now && !most.compare_exchange_weak(before, now);) {
          }
          while (most < 2) std::this_thread::yield();  // the first one waits for another, so that they meet
          inside.fetch_sub(1);
        }
        if (ask(*sql, {{name, owner, release}}) != Answers{"yes"}) wrong.fetch_add(1);
      }
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(server.value("SELECT count(*) FROM dlock.lease_sem, jsonb_object_keys(holders)"), "0");
}

TEST_F(PostgresSharingTest, RowInsertedByOthers_IsRetried) {
  const auto sql = session();
  PostgresConnection other(server.admin_conninfo());
  other.run("BEGIN");
  other.run("INSERT INTO dlock.lease_sem (name, token, permits, holders) VALUES ('x', 1, 1, '{}')");
  std::vector<std::string> answers;
  std::thread asking([&] { answers = ask(*sql, {{"x", "a"}}); });
  server.await("EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'EXECUTE change%')");
  other.run("COMMIT");
  asking.join();
  EXPECT_EQ(answers, Answers{"again"});
  EXPECT_EQ(ask(*sql, {{"x", "a"}}), Answers{"yes"});
}

// --- Clients ---------------------------------------------------------------------------------------------------------

TEST_F(PostgresSharingTest, FiftyReadersOfOneRow_Renew) {
  constexpr int clients = 5;
  constexpr int readers = 10;
  const auto log = std::make_shared<EventLog>();
  std::deque<Client> all;
  std::deque<Lease> leases;
  for (int i = 0; i < clients; ++i) {
    all.push_back(client({.observer = log}));
    for (int k = 0; k < readers; ++k) {
      leases.push_back(all.back().make_read_write_lock("x").acquire_shared({.wait = 1min, .lease = 3s}));
    }
  }
  // Another client changes the row all the time.
  std::atomic<bool> done{false};
  std::thread passer_by([&, other = client()] {
    ReadWriteLock lock = other.make_read_write_lock("x");
    while (!done) {
      const auto reading = lock.try_acquire_shared();
      EXPECT_TRUE(reading);
    }
  });
  await_renewals(*log, 3 * clients * readers);
  done = true;
  passer_by.join();
  EXPECT_FALSE(log->losses.happened());
  for (const Lease& each : leases) EXPECT_TRUE(each.held());
  EXPECT_EQ(all.front().inspect("x", LockKind::read_write).holders.size(), leases.size());
}

// A client waits for the row of one name, and renews the others.
TEST_F(PostgresSharingTest, RowLockedByOthers_DelaysNoOtherLockForLong) {
  const auto log = std::make_shared<EventLog>();
  const Client locker = client({.response_timeout = 10s, .observer = log});
  Semaphore stuck = locker.make_semaphore("stuck", 2);
  Semaphore other = locker.make_semaphore("other", 2);
  const Lease held = stuck.acquire({.wait = 1min, .lease = 10min});
  const Lease renewed = other.acquire({.wait = 1min, .lease = 6s});
  PostgresConnection foreign(server.admin_conninfo());
  foreign.run("BEGIN");
  foreign.run("SELECT name FROM dlock.lease_sem WHERE name = 'stuck' FOR UPDATE");
  std::error_code error;
  EXPECT_FALSE(stuck.try_acquire({}, error));
  EXPECT_EQ(error, errc::unavailable) << "there is a permit, so it is not busy";
  Pending waiting(stuck, {});
  await_renewals(*log, 3);
  EXPECT_TRUE(renewed.held());
  EXPECT_FALSE(waiting.done());
  foreign.run("ROLLBACK");
  EXPECT_TRUE(waiting.lease().held());
  EXPECT_FALSE(log->losses.happened());
}

TEST_F(PostgresSharingTest, List_ShowsHoldersByName) {
  const Client asking = client();
  Semaphore semaphore = asking.make_semaphore("b", 5);
  const Lease one = semaphore.acquire({.wait = 1min, .lease = 1min});
  const Lease two = semaphore.acquire({.wait = 1min, .lease = 10min});
  (void)asking.make_semaphore("a", 1).acquire({.wait = 1min}).release();
  const auto all = asking.list(LockKind::semaphore);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].name, "a");
  EXPECT_FALSE(all[0].held);
  EXPECT_TRUE(all[0].holders.empty());
  EXPECT_EQ(all[0].permits, 0U);
  EXPECT_EQ(all[1].name, "b");
  EXPECT_EQ(all[1].permits, 5U);
  EXPECT_EQ(all[1].token, two.token());
  ASSERT_EQ(all[1].holders.size(), 2U);
  EXPECT_GT(all[1].remaining, 1min) << "of the longest lease";
  EXPECT_TRUE(asking.list(LockKind::read_write).empty());
}

TEST_F(PostgresSharingTest, ForgetIdle_KeepsHeldAndMarkedNames) {
  const auto sql = session();
  EXPECT_EQ(ask(*sql, {{"held", "a"}, {"marked", "b", acquire, 9, 9}, {"waited", "c"}, {"idle", "d"}}),
            (Answers{"yes", "yes", "yes", "yes"}));
  EXPECT_EQ(ask(*sql, {{"marked", "b", release}, {"waited", "c", release}, {"idle", "d", release}}),
            (Answers{"yes", "yes", "yes"}));
  server.run("UPDATE dlock.lease_sem SET token = 1");
  server.run("UPDATE dlock.lease_sem SET marked_until = 'infinity' WHERE name = 'marked'");
  server.run("UPDATE dlock.lease_sem SET waiting_until = 'infinity' WHERE name = 'waited'");
  const Client asking = client();
  EXPECT_EQ(asking.forget_idle(1min, LockKind::semaphore), Answers{"idle"});
  EXPECT_EQ(server.value("SELECT string_agg(name, ',' ORDER BY name) FROM dlock.lease_sem"), "held,marked,waited");
}

// Another program's table in the place of ours, and a row of another layout.
TEST_F(PostgresSharingTest, OtherTablesAndRows_AreRefused) {
  const Client asking = client();
  server.run("INSERT INTO dlock.lease_sem (name, token, permits, holders) VALUES ('x', 1, 1, '{\"a\": \"b\"}')");
  std::error_code error;
  EXPECT_FALSE(asking.make_semaphore("x", 1).try_acquire({}, error));
  EXPECT_EQ(error, errc::protocol);
  server.run("DROP TABLE dlock.lease_rw; CREATE TABLE dlock.lease_rw (LIKE dlock.lease)");
  EXPECT_FALSE(asking.make_read_write_lock("x").try_acquire({}, error));
  EXPECT_EQ(error, errc::invalid_argument);
}

}  // namespace

}  // namespace dlock::test
