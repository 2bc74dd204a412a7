// The set-up of the schema, by clients over a server in memory. What the SQL of it does is for tests on real servers.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "backend_fixture.hpp"

namespace dlock::postgres {

namespace {

class PostgresSchemaSetUp : public BackendTest {
 protected:
  PostgresSchemaSetUp() {
    server.has_schema = false;
    server.version.reset();
  }

  // The place of the answer: "nothing" until it comes, then what was made, or the failure's words.
  std::size_t begin() {
    const std::size_t place = told.size();
    told.emplace_back("nothing");
    ours->backend->initialize([this, place](Result<MadeTables> made) {
      EXPECT_EQ(told[place], "nothing") << "answered twice";
      code = made.ok() ? std::error_code() : made.failure().code;
      told[place] = made.ok() ? "made" : made.failure().detail;
      for (const std::string& each : made.ok() ? made.value() : MadeTables()) told[place] += "; " + each;
      if (when_answered) when_answered();
    });
    EXPECT_EQ(told[place], "nothing") << "answered inside the call";
    return place;
  }
  const std::string& initialize(std::chrono::nanoseconds time = 5s) {
    const std::size_t place = begin();
    engine.advance(time);
    return told[place];
  }
  // Queries that create anything, since the last call.
  [[nodiscard]] std::ptrdiff_t take_creations() {
    const auto creates = [](const std::string& words) { return words.find("CREATE") != words.npos; };
    return std::ranges::count_if(std::exchange(sent, {}), creates);
  }

  Words told;
  std::error_code code;
  std::function<void()> when_answered;
};
INSTANTIATE_TEST_SUITE_P(, PostgresSchemaSetUp, testing::Values(Strategy::table), name_of_strategy);

TEST(PostgresSchema, Change_IsOneTransactionUnderALock) {
  for (const auto& statements : {creation("dlock", Durability::sync, true), recording("dlock")}) {
    EXPECT_TRUE(statements.front().starts_with("BEGIN ISOLATION LEVEL READ COMMITTED"));
    EXPECT_NE(statements.at(1).find("lock_timeout"), std::string::npos);
    EXPECT_NE(statements.at(first_change - 1).find("pg_advisory_xact_lock("), std::string::npos);
    EXPECT_EQ(statements.back(), "COMMIT");
  }
}

// Hazard: `CREATE ... IF NOT EXISTS` needs the right even if everything exists
TEST_P(PostgresSchemaSetUp, NothingMissing_ReadsOnly) {
  server.has_schema = true;
  server.version = "1";
  server.catalogue = [](Rows& rights, Rows& /*tables*/) { rights.rows = {{"t", "t", "f", "f"}}; };
  EXPECT_EQ(initialize(), "made");
  EXPECT_EQ(take_creations(), 0);
}

TEST_P(PostgresSchemaSetUp, VersionUnreadable_IsNotRecorded) {
  server.has_schema = true;
  server.catalogue = [](Rows& /*rights*/, Rows& tables) {
    if (!tables.empty()) tables.rows[0][3] = "f";
  };
  EXPECT_EQ(initialize(), "made");
  EXPECT_FALSE(server.version);
  server.catalogue = nullptr;
  EXPECT_EQ(initialize(), "made");
  EXPECT_EQ(server.version, "1");
  EXPECT_EQ(take_creations(), 0);
}

// Tests on real servers have what else may be there.
TEST_P(PostgresSchemaSetUp, UnfitSchema_IsRefusedWithAReason) {
  const std::string grants =
      "run \"dlock init\" with a role that may, and then GRANT USAGE ON SCHEMA \"dlock\" TO <role>; GRANT SELECT, "
      "INSERT, UPDATE ON ALL TABLES IN SCHEMA \"dlock\" TO <role>";
  const struct {
    std::function<void(FakePostgres& with, Rows& rights, Rows& tables)> change;
    errc code;
    std::string words;
  } rows[] = {
      {[](auto& with, auto&, auto&) { with.version = "2"; }, errc::unsupported,
       "schema \"dlock\" has version 2 of dlock's tables, and this is a dlock for version 1: use a newer dlock, or "
       "another schema"},
      {[](auto&, auto&, auto& tables) { tables.rows[1][1] = "id,price"; }, errc::invalid_argument,
       "table \"dlock\".\"lease\" is not dlock's: it has the columns id,price instead of "
       "name,owner,holder,token,expires_at,waiting_until; use another schema"},
      {[](auto&, auto& rights, auto& tables) {
         rights.rows = {{"t", "t", "f", "f"}};
         tables.rows.pop_back();
       },
       errc::access_denied,
       "schema \"dlock\" lacks the tables \"fence_elect\", and this role may not create tables in it: " + grants},
      {[](auto&, auto&, auto& tables) { tables.rows[0][8] = "trigger trap"; }, errc::access_denied,
       "that are not dlock's and would run with the rights of every role that takes a lock: trigger trap; drop them"},
  };
  for (const auto& each : rows) {
    server.has_schema = true;
    server.version = "1";
    server.catalogue = [&](Rows& rights, Rows& tables) { each.change(server, rights, tables); };
    const std::string words = initialize();
    EXPECT_TRUE(words.starts_with("fake:5432/locks: ")) << words;
    EXPECT_NE(words.find(each.words), words.npos) << words;
    EXPECT_EQ(code, each.code) << words;
  }
  EXPECT_EQ(take_creations(), 0);
}

// Others create the same, or have the lock of all who do.
// Hazard: `CREATE ... IF NOT EXISTS` fails if several run at once
TEST_P(PostgresSchemaSetUp, CreationRefused_RetriesOrFails) {
  for (const char* const each : {"23505", "42P07", "42710", "42P06", "40P01", "55P03", "42P01"}) {
    server.has_schema = false;
    refuse("CREATE TABLE", each, 1);
    EXPECT_TRUE(initialize().starts_with("made; schema")) << each << ": " << told.back();
    EXPECT_EQ(take_creations(), 2) << each;
  }
  server.has_schema = false;
  refuse("CREATE TABLE", "55P03");
  (void)initialize(1min);
  EXPECT_EQ(code, errc::unavailable) << "not busy: no lock is";
  EXPECT_EQ(take_creations(), 10) << "not for ever";
  refuse("CREATE TABLE", "42501");
  EXPECT_NE(initialize().find("GRANT USAGE"), std::string::npos) << "a right that was not asked about";
  EXPECT_EQ(code, errc::access_denied);
  EXPECT_EQ(take_creations(), 1);
}

TEST_P(PostgresSchemaSetUp, ConcurrentCallers_ShareOneRun) {
  spoil("BEGIN", Fate::hold);
  const std::size_t first = begin();
  engine.advance(2s);
  const std::size_t second = begin();
  engine.advance(3s);
  EXPECT_EQ(told[first], "schema \"dlock\" could not be set up in time");
  EXPECT_EQ(code, errc::unavailable);
  EXPECT_EQ(told[second], "nothing");
  heal();
  engine.run();
  EXPECT_TRUE(told[second].starts_with("made; schema")) << told[second];
  EXPECT_EQ(server.wire().dialled, 1);
}

TEST_P(PostgresSchemaSetUp, NoCallerLeft_Stops) {
  spoil("BEGIN", Fate::hold);
  (void)initialize();
  EXPECT_EQ(server.wire().open(), 0U);
  engine.advance(1h);
  EXPECT_EQ(server.wire().dialled, 1);
  spoil("BEGIN", Fate::lose_answer);
  (void)initialize();
  EXPECT_EQ(code, errc::unavailable) << "the next call makes sure";
  heal();
  EXPECT_TRUE(initialize().starts_with("made"));
  EXPECT_EQ(server.wire().open(), 0U) << "its connection is closed";
}

TEST_P(PostgresSchemaSetUp, Handler_MayCallAgainOrDestroy) {
  server.may_create_schema = false;
  when_answered = [&] {
    when_answered = nullptr;
    server.may_create_schema = true;
    (void)begin();
  };
  (void)initialize();
  EXPECT_TRUE(told.back().starts_with("made; schema")) << told.back();
  when_answered = [&] { ours->backend.reset(); };
  const std::size_t last = begin();
  (void)begin();
  engine.advance(5s);
  EXPECT_EQ(told[last], "made");
  EXPECT_EQ(told[last + 1], "nothing");
  EXPECT_EQ(engine.pending_timers(), 0U);
}

}  // namespace

}  // namespace dlock::postgres
