// The statements of the row strategies where they meet others' on a real server. Each race that the usual ways to write
// them lose is run with such a one first, to show that it is the race.
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backends/postgres/sql/statements.hpp"
#include "held_lock.hpp"
#include "live_services.hpp"
#include "postgres/shared_server.hpp"

namespace dlock::test {

namespace {

using postgres::Durability;

constexpr const char* microseconds = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

// How to take a lock: a statement, and the arguments it gets for a name and an owner. Its answer has the token in one
// of its columns; no row, or NULL: busy.
struct Taking {
  std::string sql;
  bool ours = false;  // more arguments
  bool many = false;  // they are arrays
  bool optimistic = false;
  std::size_t token = 1;  // column

  [[nodiscard]] std::string arguments(const std::string& name, const std::string& owner) const {
    const auto text = [&](const std::string& value) { return many ? "ARRAY['" + value + "']" : "'" + value + "'"; };
    const auto number = [&](const std::string& value) { return many ? "ARRAY[" + value + "]" : value; };
    std::string all = text(name) + ", " + text(owner) + ", " + text("holder") + ", " + number("60000");
    if (ours) all += ", " + text("") + ", " + number("0") + ", " + number("0") + ", ''";
    return all;
  }
};

Taking ours(bool optimistic, bool many) {
  const auto statements = optimistic ? postgres::optimistic_statements("dlock", Durability::sync)
                                     : postgres::table_statements("dlock", Durability::sync);
  return {.sql = (many ? statements.acquire : statements.acquire_one).sql,
          .ours = true,
          .many = many,
          .optimistic = optimistic};
}

const char* table_of(const Taking& taking) {
  return taking.optimistic ? "dlock.optimistic" : "dlock.lease";
}

// The usual upsert, with that as the token and that as the start of the lease.
Taking upsert(const std::string& token) {
  return {.sql =
              "INSERT INTO dlock.lease AS l (name, owner, holder, token, expires_at) VALUES ($1::text, $2::text, "
              "$3::text, " +
              token +
              ", clock_timestamp() + $4::bigint * interval '1 ms') ON CONFLICT (name) DO UPDATE SET owner = "
              "excluded.owner, holder = excluded.holder, token = excluded.token, expires_at = excluded.expires_at "
              "WHERE l.expires_at <= clock_timestamp() RETURNING token",
          .token = 0};
}

class Locker {
 public:
  Locker(const PostgresServer& server, Taking taking) : taking_(std::move(taking)), sql_(server.admin_conninfo()) {
    sql_.run("PREPARE take AS " + taking_.sql);
  }
  void send(const std::string& owner) { sql_.send("EXECUTE take(" + taking_.arguments("lock", owner) + ")"); }
  // The token; nullopt: busy.
  [[nodiscard]] std::optional<std::int64_t> receive() {
    const PostgresReply reply = sql_.receive();
    if (reply.is_error()) throw std::runtime_error(reply.error);
    if (reply.rows.empty() || !reply.rows[0].at(taking_.token)) return std::nullopt;
    return std::stoll(*reply.rows[0][taking_.token]);
  }
  [[nodiscard]] std::optional<std::int64_t> take(const std::string& owner) {
    send(owner);
    return receive();
  }
  [[nodiscard]] int pid() const { return sql_.backend_pid(); }

 private:
  const Taking taking_;
  PostgresConnection sql_;
};

class PostgresRaceTest : public OnSharedServer<> {
 protected:
  void SetUp() override {
    server.run("DROP SCHEMA IF EXISTS dlock CASCADE");
    ASSERT_FALSE(LiveServices(server.url()).set_up());
    server.run("CREATE SEQUENCE dlock.tokens START 1000");
  }

  void await_waiting(int pid) {
    server.await("EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pid = " + std::to_string(pid) + ")");
  }
  // A row whose lock is free, last held a while ago.
  void make_free_row(const Taking& taking) {
    const std::string insert = std::string("INSERT INTO ") + table_of(taking);
    if (taking.optimistic) {
      server.run(insert + " (name, holder, version, token, lease_ms) VALUES ('lock', '', 1, 1, 1)");
    } else {
      server.run(insert + " (name, holder, token, expires_at) VALUES ('lock', '', 1, '-infinity')");
    }
  }
  void free_row(const Taking& taking) {
    server.run(std::string("UPDATE ") + table_of(taking) +
               (taking.optimistic ? " SET owner = NULL" : " SET owner = NULL, expires_at = '-infinity'"));
  }

  struct Race {
    std::int64_t others_token = 0;  // of who was faster
    std::string others_end;         // when that one was through
    std::optional<std::int64_t> token;
  };
  // Somebody else has the row, and begins and ends a lease while we ask for one. `others` is what its token is.
  Race lose_to_somebody_who_releases(const Taking& taking, bool waits, const std::string& others = microseconds) {
    const std::string table = table_of(taking);
    make_free_row(taking);
    PostgresConnection other(server.admin_conninfo());
    other.run("BEGIN; SELECT FROM " + table + " FOR UPDATE");
    Locker locker(server, taking);
    Race race;
    locker.send("us");
    if (waits) {
      await_waiting(locker.pid());
    } else {
      race.token = locker.receive();
    }
    race.others_token = std::stoll(other.value("UPDATE " + table + " SET token = " + others + " RETURNING token"));
    race.others_end = other.value("SELECT clock_timestamp()");
    other.run("COMMIT");
    if (waits) race.token = locker.receive();
    if (!race.token) race.token = locker.take("us");
    return race;
  }
  // The lease of 60 s was counted from after that moment.
  bool expiry_is_counted_from_after(const std::string& moment) {
    return server.value("SELECT expires_at - interval '60 s' >= '" + moment + "' FROM dlock.lease") == "t";
  }
};

// --- Tokens and expiries come after the wait -------------------------------------------------------------------------

TEST_F(PostgresRaceTest, TheUsualUpsertHandsOutASmallerTokenAfterAGreaterOne) {
  const Race race = lose_to_somebody_who_releases(upsert(microseconds), true);
  ASSERT_TRUE(race.token);
  EXPECT_LT(*race.token, race.others_token) << "EXCLUDED was worked out before the wait";
  EXPECT_FALSE(expiry_is_counted_from_after(race.others_end));
}

TEST_F(PostgresRaceTest, TheUsualUpsertDoesSoWithASequence) {
  const Race race = lose_to_somebody_who_releases(upsert("nextval('dlock.tokens')"), true, "nextval('dlock.tokens')");
  ASSERT_TRUE(race.token);
  EXPECT_LT(*race.token, race.others_token);
}

TEST_F(PostgresRaceTest, AnUpdateByTheStartOfTheTransactionCountsTheLeaseFromBeforeTheWait) {
  const Race race = lose_to_somebody_who_releases(
      {.sql = std::string("UPDATE dlock.lease SET owner = $2::text, holder = $3::text, token = greatest(token + 1, ") +
              microseconds +
              "), expires_at = now() + $4::bigint * interval '1 ms' WHERE name = $1::text AND expires_at <= "
              "clock_timestamp() RETURNING token",
       .token = 0},
      true);
  ASSERT_TRUE(race.token);
  EXPECT_GT(*race.token, race.others_token);
  EXPECT_FALSE(expiry_is_counted_from_after(race.others_end));
}

TEST_F(PostgresRaceTest, AnInsertAfterADeleteHandsOutASmallerTokenAfterAGreaterOne) {
  PostgresConnection other(server.admin_conninfo());
  other.run("BEGIN; INSERT INTO dlock.lease (name, holder, token, expires_at) VALUES ('lock', '', 1, 'infinity')");
  Locker locker(server, {.sql = std::string("INSERT INTO dlock.lease (name, owner, holder, token, expires_at) VALUES "
                                            "($1::text, $2::text, $3::text, ") +
                                microseconds +
                                ", clock_timestamp() + $4::bigint * interval '1 ms') ON CONFLICT (name) DO NOTHING "
                                "RETURNING token",
                         .token = 0});
  locker.send("us");
  await_waiting(locker.pid());
  const auto others =
      std::stoll(other.value(std::string("UPDATE dlock.lease SET token = ") + microseconds + " RETURNING token"));
  other.run("DELETE FROM dlock.lease; COMMIT");
  const auto token = locker.receive();
  ASSERT_TRUE(token);
  EXPECT_LT(*token, others) << "so a release keeps the row";
}

class PostgresOurRaceTest : public PostgresRaceTest, public testing::WithParamInterface<std::pair<bool, bool>> {
 protected:
  const Taking taking = ours(GetParam().first, GetParam().second);
};

TEST_P(PostgresOurRaceTest, ARowThatSomebodyHasIsBusyAtOnceAndTheNextTokenIsGreater) {
  const Race race = lose_to_somebody_who_releases(taking, false);
  ASSERT_TRUE(race.token);
  EXPECT_GT(*race.token, race.others_token);
  if (!taking.optimistic) {
    EXPECT_TRUE(expiry_is_counted_from_after(race.others_end));
  }
}

// The one thing that is waited for: whether somebody's new row stays.
TEST_P(PostgresOurRaceTest, ARowThatSomebodyIsInsertingIsNotGrantedTwice) {
  const std::string table = table_of(taking);
  // Ours ends the wait after a moment; here it is to go on until the other one has decided.
  Taking patient = taking;
  const std::string limit = "'lock_timeout', '250'";
  ASSERT_NE(patient.sql.find(limit), std::string::npos);
  patient.sql.replace(patient.sql.find(limit), limit.size(), "'lock_timeout', '0'");
  PostgresConnection other(server.admin_conninfo());
  other.run("PREPARE take AS " + taking.sql);
  for (const bool stays : {true, false}) {
    server.run("TRUNCATE " + table);
    other.run("BEGIN");
    const PostgresReply first = other.query("EXECUTE take(" + taking.arguments("lock", "other") + ")");
    ASSERT_EQ(first.rows.size(), 1U);
    Locker locker(server, patient);
    locker.send("us");
    await_waiting(locker.pid());
    other.run(stays ? "COMMIT" : "ROLLBACK");
    EXPECT_EQ(locker.receive().has_value(), !stays);
    EXPECT_EQ(server.value("SELECT owner FROM " + table), stays ? "other" : "us");
  }
}

// What a trigger does after the values were worked out, and everything else that makes a server slow: the row stays
// locked meanwhile, so nobody else is granted anything in between.
TEST_P(PostgresOurRaceTest, AGrantThatIsSlowKeepsOthersOutAndItsTokenInOrder) {
  const std::string table = table_of(taking);
  make_free_row(taking);
  server.run(
      "CREATE FUNCTION dlock.dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "PERFORM pg_advisory_xact_lock_shared(7); RETURN NEW; END $$");
  server.run("CREATE TRIGGER dawdle BEFORE UPDATE ON " + table + " FOR EACH ROW EXECUTE FUNCTION dlock.dawdle()");
  PostgresConnection brake(server.admin_conninfo());
  brake.run("SELECT pg_advisory_lock(7)");
  Locker slow(server, taking);
  slow.send("slow");
  await_waiting(slow.pid());
  Locker quick(server, taking);
  EXPECT_FALSE(quick.take("quick")) << "busy, at once";
  brake.run("SELECT pg_advisory_unlock(7)");
  const auto first = slow.receive();
  ASSERT_TRUE(first);
  EXPECT_FALSE(quick.take("quick"));
  free_row(taking);
  const auto second = quick.take("quick");
  ASSERT_TRUE(second);
  EXPECT_GT(*second, *first);
}

TEST_P(PostgresOurRaceTest, TokensGrowAlthoughTheRowsAreLost) {
  const std::string table = table_of(taking);
  Locker locker(server, taking);
  std::int64_t last = 0;
  for (const std::string& loss : {"DELETE FROM " + table, "TRUNCATE " + table, "UPDATE " + table + " SET token = 1",
                                  "ALTER TABLE " + table + " SET UNLOGGED; TRUNCATE " + table}) {
    const auto token = locker.take("us");
    ASSERT_TRUE(token) << loss;
    EXPECT_GT(*token, last) << loss;
    last = *token;
    free_row(taking);
    server.run(loss);
  }
  EXPECT_GT(locker.take("us").value_or(0), last);
}

TEST_P(PostgresOurRaceTest, TokensGrowAlthoughTheClockStandsBack) {
  make_free_row(taking);
  server.run(std::string("UPDATE ") + table_of(taking) + " SET token = 9000000000000000000");
  Locker locker(server, taking);
  EXPECT_EQ(locker.take("us"), 9000000000000000001);
}

// Whoever sees the same version for the time of a lease takes the holder for dead.
TEST_F(PostgresRaceTest, NoVersionOfARowComesBack) {
  std::int64_t last = 0;
  const auto expect_greater = [&](const std::string& after) {
    const std::int64_t version = std::stoll(server.value("SELECT version FROM dlock.optimistic"));
    EXPECT_GT(version, last) << after;
    last = version;
  };
  Locker locker(server, ours(true, true));
  Locker one(server, ours(true, false));
  HeldLock lock(server.url(), postgres::Strategy::optimistic, "lock", "us");
  expect_greater("the first grant");
  EXPECT_TRUE(lock.renew());
  expect_greater("a renewal");
  EXPECT_TRUE(locker.take("us"));
  expect_greater("a grant to whoever has it");
  EXPECT_TRUE(one.take("us"));
  expect_greater("such a grant alone");
  EXPECT_TRUE(lock.release());
  expect_greater("a release");
  EXPECT_TRUE(locker.take("them"));
  expect_greater("a grant to somebody else");
  EXPECT_TRUE(LiveServices(server.url("strategy=optimistic")).break_lock("lock").value());
  expect_greater("a break");
}

// --- One of many gets it ---------------------------------------------------------------------------------------------

// What looks for a free row in a part of its own does not look again after the wait.
TEST_F(PostgresRaceTest, AnUpdateThatLooksFirstGrantsALockThatIsHeld) {
  const Taking looking{.sql =
                           "UPDATE dlock.lease AS l SET owner = $2::text, holder = $3::text, token = token + 1, "
                           "expires_at = clock_timestamp() + $4::bigint * interval '1 ms' FROM (SELECT name FROM "
                           "dlock.lease WHERE name = $1::text AND expires_at <= clock_timestamp() OFFSET 0) AS f "
                           "WHERE l.name = f.name RETURNING token",
                       .token = 0};
  make_free_row(looking);
  PostgresConnection other(server.admin_conninfo());
  other.run("BEGIN; UPDATE dlock.lease SET owner = 'other', expires_at = 'infinity'");
  Locker locker(server, looking);
  locker.send("us");
  await_waiting(locker.pid());
  other.run("COMMIT");
  EXPECT_TRUE(locker.receive()) << "two holders";
}

TEST_P(PostgresOurRaceTest, ALockThatSomebodyIsJustTakingIsNotGranted) {
  make_free_row(taking);
  PostgresConnection other(server.admin_conninfo());
  other.run("PREPARE take AS " + taking.sql);
  other.run("BEGIN");
  other.run("EXECUTE take(" + taking.arguments("lock", "other") + ")");
  Locker locker(server, taking);
  EXPECT_FALSE(locker.take("us")) << "at once";
  other.run("COMMIT");
  EXPECT_FALSE(locker.take("us"));
}

TEST_P(PostgresOurRaceTest, OfManyWhoMeetAFreeRowOneGetsIt) {
  constexpr int racers = 6;
  constexpr int rounds = 60;
  make_free_row(taking);
  std::vector<std::int64_t> tokens;
  std::vector<std::optional<std::int64_t>> answers(racers);
  int granted_wrongly = 0;
  const auto judge = [&]() noexcept {
    const auto granted =
        std::count_if(answers.begin(), answers.end(), [](const auto& token) { return token.has_value(); });
    if (granted != 1) ++granted_wrongly;
    for (const auto& token : answers) {
      if (token) tokens.push_back(*token);
    }
    free_row(taking);
  };
  std::barrier begin(racers);
  std::barrier end(racers, judge);
  {
    std::vector<std::jthread> threads;
    for (int racer = 0; racer < racers; ++racer) {
      threads.emplace_back([&, racer] {
        Locker locker(server, taking);
        for (int round = 0; round < rounds; ++round) {
          begin.arrive_and_wait();
          answers[static_cast<std::size_t>(racer)] = locker.take(std::to_string(round) + "-" + std::to_string(racer));
          end.arrive_and_wait();
        }
      });
    }
  }
  EXPECT_EQ(granted_wrongly, 0) << "rounds in which not exactly one got it";
  EXPECT_TRUE(std::is_sorted(tokens.begin(), tokens.end(), std::less_equal<>())) << "smaller or equal tokens";
}

INSTANTIATE_TEST_SUITE_P(Every, PostgresOurRaceTest,
                         testing::Values(std::pair{false, false}, std::pair{false, true}, std::pair{true, false},
                                         std::pair{true, true}),
                         [](const auto& test) {
                           return std::string(test.param.first ? "optimistic" : "table") +
                                  (test.param.second ? "_many" : "");
                         });

}  // namespace

}  // namespace dlock::test
