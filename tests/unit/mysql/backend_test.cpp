// Promises of the backend that the simulation does not assert: round trips, hand-overs without a poll, places, proxies,
// administration.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend_fixture.hpp"
#include "backends/common/sql/lock_rows.hpp"
#include "backends/mysql/administration/diagnosis.hpp"
#include "backends/mysql/sql/questions.hpp"
#include "backends/mysql/sql/row_commands.hpp"

namespace dlock::mysql {

namespace {

using Severity = Finding::Severity;

INSTANTIATE_TEST_SUITE_P(, EachStrategy,
                         testing::Values(Strategy::table, Strategy::optimistic, Strategy::named, Strategy::for_update),
                         name_of_strategy);

TEST_P(EachStrategy, UncontendedLock_IsAcquiredAndReleasedInOneRoundTripEach) {
  const auto ours = client(1);
  EXPECT_EQ(release(*ours, *acquire(*ours, "x")), "released");
  (void)take_sent(1);
  const auto attempt = acquire(*ours, "x");
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(take_sent(1).size(), 1U);
  EXPECT_EQ(release(*ours, *attempt), "released");
  EXPECT_EQ(take_sent(1).size(), 1U);
}

TEST_P(EachStrategy, ReleasedLock_GoesToWaitersInTheirOrderAtOnce) {
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<std::unique_ptr<Attempt>> attempts;
  for (int process = 1; process <= 4; ++process) {
    clients.push_back(client(process));
    attempts.push_back(acquire(*clients.back(), "x", true));
    engine.advance(100ms);  // the wait begins
  }
  const TimePoint before = engine.now();
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    SCOPED_TRACE(i);
    ASSERT_TRUE(attempts[i]->grant);
    for (std::size_t later = i + 1; later < attempts.size(); ++later) EXPECT_FALSE(attempts[later]->grant);
    EXPECT_EQ(release(*clients[i], *attempts[i]), "released");
  }
  EXPECT_EQ(engine.now(), before);
}

TEST_P(EachStrategy, WaitersOfOneClient_AreGrantedInTheirOrderAtOnce) {
  const auto ours = client(1);
  const auto first = acquire(*ours, "x", true);
  const auto second = acquire(*ours, "x", true);
  const auto third = acquire(*ours, "x", true);
  engine.advance(100ms);
  ASSERT_TRUE(first->grant && !second->grant && !third->grant);
  EXPECT_EQ(release(*ours, *first), "released");
  ASSERT_TRUE(second->grant && !third->grant);
  EXPECT_EQ(release(*ours, *second), "released");
  ASSERT_TRUE(third->grant);
  EXPECT_EQ(release(*ours, *third), "released");
}

// --- Places ----------------------------------------------------------------------------------------------------------

TEST_F(BackendTest, WaiterThatGivesUp_LeavesNoPlace) {
  const auto holder = client(1);
  const auto ours = client(2);
  const auto held = acquire(*holder, "x");
  auto& bell = server.user_lock("lease/x");
  for (const bool first : {false, true}) {
    SCOPED_TRACE(first ? "first" : "queued");
    auto attempt = acquire(*ours, "x", true);
    EXPECT_EQ(server.sessions_of(bell), (std::vector{1, 2}));
    // Then the waiter's session gets the bell, but not the lock.
    if (first) server.expire(1);
    engine.run();
    EXPECT_EQ(server.sessions_of(bell).front(), first ? 2 : 1);
    attempt.reset();
    engine.advance(1s);
    EXPECT_EQ(server.sessions_of(bell), first ? std::vector<int>() : std::vector{1});
  }
}

// No release wakes it: its session has the bell already.
TEST_F(BackendTest, WaiterWithTheBell_GetsAReleasedLockSoon) {
  const auto holder = client(1);
  const auto ours = client(2);
  const auto held = acquire(*holder, "x");
  const auto waiting = acquire(*ours, "x", true);
  server.expire(1);
  engine.advance(1s);  // the holder connects again
  EXPECT_EQ(server.sessions_of(server.user_lock("lease/x")), std::vector{2});
  EXPECT_EQ(release(*holder, *held), "released");
  engine.advance(300ms);
  EXPECT_TRUE(waiting->grant);
}

TEST_F(BackendTest, ExpiredLease_KeepsNoBell) {
  const auto holder = client(1);
  const auto ours = client(2);
  const auto other = client(3);
  const auto kept = acquire(*holder, "x");
  const auto waiting = acquire(*ours, "x", true);
  EXPECT_EQ(release(*holder, *kept), "released");
  ASSERT_TRUE(waiting->grant) << "and its place has the bell";
  engine.advance(11s);
  const auto attempt = acquire(*other, "x");
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(server.sessions_of(server.user_lock("lease/x")), std::vector{3});
  EXPECT_EQ(release(*ours, *waiting), "not ours");
}

TEST_F(BackendTest, BrokenLock_KeepsNoBellAfterItsRelease) {
  const auto holder = client(1);
  const auto other = client(2);
  const auto held = acquire(*holder, "x");
  other->backend.break_lock(LockKind::lock, "x", [](const Result<bool>& broken) { EXPECT_TRUE(broken.value()); });
  engine.run();
  EXPECT_EQ(release(*holder, *held), "not ours");
  EXPECT_TRUE(server.sessions_of(server.user_lock("lease/x")).empty());
  EXPECT_TRUE(acquire(*other, "x")->grant);
}

TEST_F(BackendTest, Places_AreAtMostMaxConnections) {
  options.max_connections = 2;
  const auto holder = client(1);
  const auto ours = client(2);
  std::vector<std::unique_ptr<Attempt>> held;
  std::vector<std::unique_ptr<Attempt>> waiting;
  for (const char* const name : {"a", "b", "c", "d"}) {
    held.push_back(acquire(*holder, name));
    waiting.push_back(acquire(*ours, name, true));
  }
  EXPECT_EQ(sessions_for_waits(2), 2U);
  for (const auto& each : held) EXPECT_EQ(release(*holder, *each), "released");
  engine.advance(2100ms);  // those without a place poll
  for (const auto& each : waiting) EXPECT_TRUE(each->grant) << each->request.name;
}

TEST_F(BackendTest, PlaceOfAWaiterThatGivesUp_GoesToAnotherLock) {
  options.max_connections = 1;
  const auto holder = client(1);
  const auto ours = client(2);
  std::vector<std::unique_ptr<Attempt>> held;
  std::vector<std::unique_ptr<Attempt>> waiting;
  for (const char* const name : {"a", "b"}) {
    held.push_back(acquire(*holder, name));
    waiting.push_back(acquire(*ours, name, true));
  }
  waiting[0].reset();
  engine.run();
  EXPECT_EQ(server.sessions_of(server.user_lock("lease/b")), (std::vector{1, 2}));
}

// The row would be held by an owner that knows nothing of it.
TEST_F(BackendTest, RefusedQuestionBehindAGrant_LeavesNothing) {
  options.strategy = Strategy::optimistic;
  const auto ours = client(1);
  const auto other = client(2);
  bool refuses = true;
  server.refusal = [&](int, std::string_view word) {
    return word == "optimistic.look" && std::exchange(refuses, false) ? "1114" : "";
  };
  const auto refused = acquire(*ours, "x");
  EXPECT_TRUE(test::failed(*refused, errc::unavailable, "1114"));
  EXPECT_TRUE(acquire(*other, "x")->grant);
}

TEST_F(BackendTest, Proxy_LetsWaitersPollAndIsReportedOnce) {
  server.wire().info.pooled = true;
  const auto holder = client(1);
  const auto ours = client(2);
  const auto held = acquire(*holder, "x");
  ASSERT_TRUE(held->grant);
  const auto waiting = acquire(*ours, "x", true);
  const auto waits_as_well = acquire(*ours, "x", true);
  ASSERT_EQ(ours->host.warnings.size(), 1U);
  EXPECT_NE(ours->host.warnings[0].reason.detail.find("proxy"), std::string::npos);
  EXPECT_EQ(release(*holder, *held), "released");
  engine.advance(2100ms);
  EXPECT_NE(waiting->grant.has_value(), waits_as_well->grant.has_value());
  for (const int process : {1, 2}) EXPECT_EQ(sessions_for_waits(process), 0U);
  EXPECT_FALSE(any_has(take_sent(1), "_with_bell")) << "not in the first query either";
  EXPECT_EQ(release(*ours, waiting->grant ? *waiting : *waits_as_well), "released");
}

// --- Administration --------------------------------------------------------------------------------------------------

TEST_F(BackendTest, Schema_IsMadeOnce) {
  server.remove_schema();
  const auto ours = client(1);
  int made = 0;
  for (int i = 0; i < 2; ++i) {
    ours->backend.initialize([&made](const Result<std::vector<std::string>>& what) {
      ASSERT_TRUE(what.ok()) << what.failure().detail;
      EXPECT_EQ(what.value().size(), layout().size());
      ++made;
    });
  }
  const auto attempt = acquire(*ours, "x");
  EXPECT_EQ(made, 2);
  EXPECT_TRUE(attempt->grant);
  std::size_t creations = 0;
  for (const std::string& words : take_sent(1)) creations += words.starts_with("CREATE TABLE") ? 1 : 0;
  EXPECT_EQ(creations, layout().size());
}

TEST_F(BackendTest, SchemaThatCannotBeMadeOrUsed_IsRefused) {
  const struct {
    std::string words;
    errc code;
    std::function<void(FakeMysql& server)> change;
  } rows[] = {
      {"dlock init", errc::access_denied,
       [](FakeMysql& at) {
         at.remove_schema();
         at.may_create = false;
       }},
      {"is not dlock's", errc::invalid_argument,
       [](FakeMysql& at) { at.catalogue = [](Rows& tables) { tables.rows[1][1] = "name,mine"; }; }},
      {"its engine is MyISAM", errc::invalid_argument,
       [](FakeMysql& at) { at.catalogue = [](Rows& tables) { tables.rows[1][2] = "MyISAM"; }; }},
      {"a dlock for version", errc::unsupported, [](FakeMysql& at) { at.version = "7"; }},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.words);
    FakeMysql other(engine);
    row.change(other);
    Client ours(engine, other, 1, options);
    std::optional<Failure> why;
    ours.backend.initialize([&](const Result<std::vector<std::string>>& made) {
      if (!made.ok()) why = made.failure();
    });
    engine.run();
    ASSERT_TRUE(why);
    EXPECT_EQ(why->code, row.code) << why->detail;
    EXPECT_NE(why->detail.find(row.words), std::string::npos) << why->detail;
  }
}

// --- Rows ------------------------------------------------------------------------------------------------------------

// An administrator may keep a lock from everybody for longer than nanoseconds can count.
TEST(MysqlRows, LeaseUntilTheYear9999_IsTheLongest) {
  const std::string ms = "251000000000000";
  const RowRequest request{.name = "a", .owner = {}, .deadline = {}};
  const std::vector<const RowRequest*> requests{&request};
  const sql::Rows holder{.rows = {{"a", "1", "host:1:x", "7", ms, "0", "1", "1", "7"}}};
  const sql::Rows look{.rows = {{"1", "1", ms}}};
  const auto longest = std::chrono::nanoseconds::max();
  for (const LockKind kind : {LockKind::lock, LockKind::semaphore}) {
    const RowCommands commands("dlock", kind, false, [] { return false; });
    const sql::Results results =
        kind == LockKind::lock ? sql::Results{{.inserted = std::stoull(ms + "000")}} : sql::Results{{}, {}, {}, look};
    EXPECT_EQ(commands.answers_to(requests, results, {}).at(0).lease, longest);
    EXPECT_EQ(sql::read_infos(kind, holder).at(0).remaining, longest);
  }
}

// Perhaps of something between the client and the server.
TEST(MysqlRows, RowsWithTooFewColumns_AreOfFreeLocks) {
  const sql::Rows narrow{.rows = {{"a"}}};
  const sql::Rows rows = read_uncommitted({{}, narrow, narrow});
  EXPECT_FALSE(sql::read_infos(LockKind::lock, rows).at(0).held);
}

// --- The doctor ------------------------------------------------------------------------------------------------------

TEST(MysqlFindings, Difference_IsExplained) {
  using Change = std::function<void(Examined & examined, Options & options)>;
  const auto setting = [](const char* name, const char* value) -> Change {
    return [=](Examined& examined, Options&) { examined.settings[name] = value; };
  };
  const auto galera = [](Strategy strategy, bool single_writer) -> Change {
    return [=](Examined& examined, Options& options) {
      examined.server.many_writers = true;
      options.strategy = strategy;
      options.single_writer = single_writer;
    };
  };
  const struct {
    const char* check;
    Severity severity;
    const char* words;
    Change change;
  } rows[] = {
      {"version", Severity::ok, "MariaDB 10.11.19", [](auto&, auto&) {}},
      {"version", Severity::error, "10.6", [](Examined& examined, Options&) { examined.server.version = 100500; }},
      {"version", Severity::error, "8.0.1", [](Examined& examined, Options&) { examined.server.version = 50744; }},
      {"version", Severity::note, "untested", [](Examined& examined, Options&) { examined.server.version = 80036; }},
      {"encryption", Severity::ok, "verified", [](auto&, auto&) {}},
      {"encryption", Severity::note, "pose as", [](Examined&, Options& options) { options.tls = Tls::unverified; }},
      {"encryption", Severity::warning, "tls=verify",
       [](Examined& examined, Options&) { examined.server.encrypted = false; }},
      {"proxy", Severity::ok, "none", [](auto&, auto&) {}},
      {"proxy", Severity::note, "poll", [](Examined& examined, Options&) { examined.server.pooled = true; }},
      {"proxy", Severity::note, "pooler=session",
       [](Examined&, Options& options) { options.pooler = Pooler::session; }},
      {"proxy", Severity::error, "strategy=named",
       [](Examined& examined, Options& options) {
         examined.server.pooled = true;
         options.strategy = Strategy::named;
       }},
      {"durability", Severity::ok, "on disk", [](auto&, auto&) {}},
      {"durability", Severity::warning, "=2", setting("innodb_flush_log_at_trx_commit", "2")},
      {"replication", Severity::ok, "no binary log", [](auto&, auto&) {}},
      {"replication", Severity::note, "failover may forget", setting("log_bin", "ON")},
      {"replication", Severity::note, "Galera", galera(Strategy::table, false)},
      {"replication", Severity::error, "strategy=named", galera(Strategy::named, false)},
      {"replication", Severity::warning, "single_writer=true", galera(Strategy::named, true)},
      {"schema", Severity::ok, "all tables", [](auto&, auto&) {}},
      {"schema", Severity::note, "lacks table \"meta\"",
       [](Examined& examined, Options&) { (void)examined.tables.erase(examined.tables.begin()); }},
      {"schema", Severity::note, "is missing", [](Examined& examined, Options&) { examined.tables.clear(); }},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(std::string(row.check) + ": " + row.words);
    Examined examined{.server = {.version = 101119, .encrypted = true, .endpoint = "db:3306"},
                      .version = "10.11.19-MariaDB",
                      .settings = {{"innodb_flush_log_at_trx_commit", "1"}}};
    for (const TableDefinition& table : layout()) examined.tables.emplace_back(table.name);
    Options options;
    options.tls = Tls::verify;
    row.change(examined, options);
    const auto all = findings_of(examined, options);
    const auto found = std::ranges::find(all, row.check, &Finding::check);
    ASSERT_NE(found, all.end());
    EXPECT_EQ(found->severity, row.severity) << found->message;
    EXPECT_NE(found->message.find(row.words), std::string::npos) << found->message;
  }
}

}  // namespace

}  // namespace dlock::mysql
