// The set-up of the schema, by clients over a server in memory. What the SQL of it does is for tests on real servers.

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backends/postgres/postgres_backend.hpp"
#include "tests/simulation/postgres/fake_postgres.hpp"
#include "tests/support/manual_engine.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::postgres {

namespace {

using namespace std::chrono_literals;
using simulation::Fate;

class PostgresSchemaSetUp : public testing::Test {
 protected:
  PostgresSchemaSetUp() {
    options.connect_timeout = options.response_timeout = 5s;
    server.has_schema = false;
    server.version.reset();
    server.fate = [this](int, std::string_view words) {
      if (!words.starts_with("BEGIN")) return Fate::answer;
      if (words.find("CREATE") != words.npos) ++creations;
      return fate;
    };
    server.refusal = [this](int, std::string_view word, const Command&) {
      return refusals > 0 && word.starts_with("CREATE TABLE") && refusals-- > 0 ? state : std::string();
    };
    backend = make_backend(host, options, server.connections(1));
  }

  // The place of the answer: "nothing" until it comes, then what was made, or the failure's words.
  std::size_t begin() {
    const std::size_t place = said.size();
    said.emplace_back("nothing");
    backend->initialize([this, place](Result<MadeTables> made) {
      EXPECT_EQ(said[place], "nothing") << "answered twice";
      code = made.ok() ? std::error_code() : made.failure().code;
      said[place] = made.ok() ? "made" : made.failure().detail;
      for (const std::string& each : made.ok() ? made.value() : MadeTables()) said[place] += "; " + each;
      if (when_answered) when_answered();
    });
    EXPECT_EQ(said[place], "nothing") << "answered inside the call";
    return place;
  }
  const std::string& initialize(std::chrono::nanoseconds time = 5s) {
    const std::size_t place = begin();
    engine.advance(time);
    return said[place];
  }

  test::ManualEngine engine;
  FakePostgres server{engine};
  test::RecordingHost host{engine};
  Options options;
  Fate fate = Fate::answer;  // of what changes the schema
  std::string state;         // with which so many creations are refused
  int refusals = 0;
  int creations = 0;
  std::vector<std::string> said;
  std::error_code code;
  std::function<void()> when_answered;
  std::unique_ptr<Backend> backend;
};

TEST(PostgresSchema, Change_IsOneTransactionUnderALock) {
  for (const auto& statements : {creation("dlock", Durability::sync, true), recording("dlock")}) {
    EXPECT_TRUE(statements.front().starts_with("BEGIN ISOLATION LEVEL READ COMMITTED"));
    EXPECT_NE(statements.at(1).find("lock_timeout"), std::string::npos);
    EXPECT_NE(statements.at(first_change - 1).find("pg_advisory_xact_lock("), std::string::npos);
    EXPECT_EQ(statements.back(), "COMMIT");
  }
}

// Hazard: `CREATE ... IF NOT EXISTS` needs the right even if everything exists
TEST_F(PostgresSchemaSetUp, NothingMissing_ReadsOnly) {
  server.has_schema = true;
  server.version = "1";
  server.catalogue = [](Rows& rights, Rows& /*tables*/) { rights.rows = {{"t", "t", "f", "f"}}; };
  EXPECT_EQ(initialize(), "made");
  EXPECT_EQ(creations, 0);
}

TEST_F(PostgresSchemaSetUp, VersionUnreadable_IsNotRecorded) {
  server.has_schema = true;
  server.catalogue = [](Rows& /*rights*/, Rows& tables) {
    if (!tables.empty()) tables.rows[0][3] = "f";
  };
  EXPECT_EQ(initialize(), "made");
  EXPECT_FALSE(server.version);
  server.catalogue = nullptr;
  EXPECT_EQ(initialize(), "made");
  EXPECT_EQ(server.version, "1");
  EXPECT_EQ(creations, 0);
}

// Tests on real servers have what else may be there.
TEST_F(PostgresSchemaSetUp, UnfitSchema_IsRefusedWithAReason) {
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
  EXPECT_EQ(creations, 0);
}

// Others create the same, or have the lock of all who do.
// Hazard: `CREATE ... IF NOT EXISTS` fails if several run at once
TEST_F(PostgresSchemaSetUp, CreationRefused_RetriesOrFails) {
  for (const char* const each : {"23505", "42P07", "42710", "42P06", "40P01", "55P03", "42P01"}) {
    server.has_schema = false;
    creations = 0;
    state = each;
    refusals = 1;
    EXPECT_TRUE(initialize().starts_with("made; schema")) << each << ": " << said.back();
    EXPECT_EQ(creations, 2) << each;
  }
  server.has_schema = false;
  creations = 0;
  state = "55P03";
  refusals = 1'000'000;
  (void)initialize(1min);
  EXPECT_EQ(code, errc::unavailable) << "not busy: no lock is";
  EXPECT_EQ(creations, 10) << "not for ever";
  state = "42501";
  EXPECT_NE(initialize().find("GRANT USAGE"), std::string::npos) << "a right that was not asked about";
  EXPECT_EQ(code, errc::access_denied);
  EXPECT_EQ(creations, 11);
}

TEST_F(PostgresSchemaSetUp, ConcurrentCallers_ShareOneRun) {
  fate = Fate::hold;
  const std::size_t first = begin();
  engine.advance(2s);
  const std::size_t second = begin();
  engine.advance(3s);
  EXPECT_EQ(said[first], "schema \"dlock\" could not be set up in time");
  EXPECT_EQ(code, errc::unavailable);
  EXPECT_EQ(said[second], "nothing");
  fate = Fate::answer;
  server.release_held();
  engine.run();
  EXPECT_TRUE(said[second].starts_with("made; schema")) << said[second];
  EXPECT_EQ(server.wire().dialled, 1);
}

TEST_F(PostgresSchemaSetUp, NoCallerLeft_Stops) {
  fate = Fate::hold;
  (void)initialize();
  EXPECT_EQ(server.wire().open(), 0U);
  engine.advance(1h);
  EXPECT_EQ(server.wire().dialled, 1);
  fate = Fate::lose_answer;
  (void)initialize();
  EXPECT_EQ(code, errc::unavailable) << "the next call makes sure";
  fate = Fate::answer;
  EXPECT_TRUE(initialize().starts_with("made"));
  EXPECT_EQ(server.wire().open(), 0U) << "its connection is closed";
}

TEST_F(PostgresSchemaSetUp, Handler_MayCallAgainOrDestroy) {
  server.may_create_schema = false;
  when_answered = [&] {
    when_answered = nullptr;
    server.may_create_schema = true;
    (void)begin();
  };
  (void)initialize();
  EXPECT_TRUE(said.back().starts_with("made; schema")) << said.back();
  when_answered = [&] { backend.reset(); };
  const std::size_t last = begin();
  (void)begin();
  engine.advance(5s);
  EXPECT_EQ(said[last], "made");
  EXPECT_EQ(said[last + 1], "nothing");
  EXPECT_EQ(engine.pending_timers(), 0U);
}

}  // namespace

}  // namespace dlock::postgres
