// The set-up of the schema, by clients over a server in memory. What the SQL of it does is for tests on real servers.
#include "backends/postgres/schema/schema.hpp"

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
    backend.emplace(host, options, server.connections(1));
  }

  // The place of the answer: "nothing" until it comes, then what was made, or the failure's words.
  std::size_t begin() {
    const std::size_t place = said.size();
    said.emplace_back("nothing");
    backend->initialize([this, place](Result<Schema::Made> made) {
      EXPECT_EQ(said[place], "nothing") << "answered twice";
      code = made.ok() ? std::error_code() : made.failure().code;
      said[place] = made.ok() ? "made" : made.failure().detail;
      for (const std::string& each : made.ok() ? made.value() : Schema::Made()) said[place] += "; " + each;
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
  std::optional<PostgresBackend> backend;
};

TEST_F(PostgresSchemaSetUp, MakesAndSaysWhatIsMissing) {
  std::string all = "made; schema \"dlock\"";
  for (const TableDefinition& table : layout())
    all += "; table " + std::string("\"dlock\".\"").append(table.name) + '"';
  EXPECT_EQ(initialize(), all);
  EXPECT_TRUE(server.has_schema);
  EXPECT_EQ(server.version, "1");
  EXPECT_EQ(initialize(), "made");
  EXPECT_EQ(creations, 1);
  EXPECT_EQ(server.wire().open(), 0U) << "its connection is closed";
}

TEST_F(PostgresSchemaSetUp, OnlyLooksWhereNothingIsMissing) {
  server.has_schema = true;
  server.version = "1";
  server.catalogue = [](Rows& rights, Rows& /*tables*/) { rights.rows = {{"t", "t", "f", "f"}}; };
  EXPECT_EQ(initialize(), "made");
  EXPECT_EQ(creations, 0);
}

TEST_F(PostgresSchemaSetUp, AVersionIsRecordedUnlessItCannotBeRead) {
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

// Tables without their new column belong to an older dlock.
TEST_F(PostgresSchemaSetUp, TablesOfAnOlderDlockAreExtendedByTheirOwner) {
  server.has_schema = true;
  server.version = "1";
  bool owned = false;
  int looks = 0;
  server.catalogue = [&](Rows& /*rights*/, Rows& tables) {
    if (tables.empty() || ++looks > 4) return;
    for (const std::size_t row : {1U, 2U}) {
      tables.rows[row][1] = std::string(layout()[row].columns);
      if (!owned) tables.rows[row][9] = "f";
    }
  };
  EXPECT_EQ(initialize(), "made");
  owned = true;
  EXPECT_EQ(initialize(), "made; column waiters of table \"dlock\".\"lease\"");
}

TEST_F(PostgresSchemaSetUp, WhatIsThereIsRefusedInWords) {
  const std::string grants =
      "run \"dlock init\" with a role that may, and then GRANT USAGE ON SCHEMA \"dlock\" TO <role>; GRANT SELECT, "
      "INSERT, UPDATE ON ALL TABLES IN SCHEMA \"dlock\" TO <role>";
  const struct {
    std::function<void(FakePostgres& server, Rows& rights, Rows& tables)> state;
    errc code;
    std::string words;
  } cases[] = {
      {[](auto& server, auto&, auto&) { server.version = "2"; }, errc::unsupported,
       "schema \"dlock\" has version 2 of dlock's tables, and this is a dlock for version 1: use a newer dlock, or "
       "another schema"},
      {[](auto& server, auto&, auto& tables) {
         server.version = "2";
         tables.rows.pop_back();  // a newer dlock may do without
       },
       errc::unsupported, "schema \"dlock\" has version 2"},
      {[](auto&, auto&, auto& tables) { tables.rows[1][1] = "id,price"; }, errc::invalid_argument,
       "table \"dlock\".\"lease\" is not dlock's: it has the columns id,price instead of "
       "name,owner,holder,token,expires_at,waiting_until; use another schema"},
      {[](auto&, auto&, auto& tables) { tables.rows[0][1] = "version"; }, errc::invalid_argument,
       "table \"dlock\".\"meta\" is not dlock's"},
      {[](auto&, auto&, auto& tables) { tables.rows.pop_back(); }, errc::invalid_argument,
       "\"dlock\".\"fence_elect\" is not a table; use another schema"},
      {[](auto&, auto& rights, auto& tables) {
         rights.rows = {{"f", "f", "f", "f"}};
         tables.rows.clear();
       },
       errc::access_denied,
       "schema \"dlock\" does not exist, and this role may not create schemas in the database: " + grants},
      {[](auto&, auto& rights, auto& tables) {
         rights.rows = {{"t", "t", "f", "f"}};
         tables.rows.pop_back();
       },
       errc::access_denied,
       "schema \"dlock\" lacks the tables \"fence_elect\", and this role may not create tables in it: " + grants},
      {[](auto&, auto& rights, auto&) {
         rights.rows = {{"t", "f", "f", "f"}};
       },
       errc::access_denied, "this role may not use schema \"dlock\": " + grants},
      {[](auto&, auto&, auto& tables) {
         tables.rows[0][6] = "mallory";
         tables.rows[0][7] = "f";
       },
       errc::access_denied, "table \"dlock\".\"meta\" belongs to role \"mallory\", whose triggers would run with"},
      {[](auto&, auto&, auto& tables) { tables.rows[0][8] = "trigger trap"; }, errc::access_denied,
       "that are not dlock's and would run with the rights of every role that takes a lock: trigger trap; drop them"},
  };
  for (const auto& each : cases) {
    server.has_schema = true;
    server.version = "1";
    server.catalogue = [&](Rows& rights, Rows& tables) { each.state(server, rights, tables); };
    const std::string words = initialize();
    EXPECT_TRUE(words.starts_with("fake:5432/locks: ")) << words;
    EXPECT_NE(words.find(each.words), words.npos) << words;
    EXPECT_EQ(code, each.code) << words;
  }
  EXPECT_EQ(creations, 1) << "only a view in the way is not seen before";
}

// Others create the same, or have the lock of all who do.
TEST_F(PostgresSchemaSetUp, ACreationIsRefusedAndMadeAgain) {
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

TEST_F(PostgresSchemaSetUp, CallersShareOneRunAndEachIsAnsweredByItsDeadline) {
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

TEST_F(PostgresSchemaSetUp, NothingGoesOnThatNobodyWaitsFor) {
  fate = Fate::hold;
  (void)initialize();
  EXPECT_EQ(server.wire().open(), 0U);
  engine.advance(1h);
  EXPECT_EQ(server.wire().dialled, 1);
}

TEST_F(PostgresSchemaSetUp, AServerThatCannotBeAskedIsUnavailable) {
  server.wire().dialling = FakeServer::Dialling::fail;
  EXPECT_EQ(initialize(), "fake: connection refused");
  EXPECT_EQ(code, errc::unavailable);
  server.wire().dialling = FakeServer::Dialling::refuse_password;
  (void)initialize();
  EXPECT_EQ(code, errc::access_denied);
  server.wire().dialling = FakeServer::Dialling::accept;
  fate = Fate::lose_answer;
  (void)initialize();
  EXPECT_EQ(code, errc::unavailable) << "not ambiguous: the next call makes sure";
  fate = Fate::answer;
  EXPECT_TRUE(initialize().starts_with("made"));
}

TEST_F(PostgresSchemaSetUp, AHandlerMayCallAgainAndMayBeTheEnd) {
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
