// The statements of the row strategies where they meet others' on a real server. The usual ways to write them lose such
// races, which shows that it is the race.
#include <algorithm>
#include <barrier>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "backends/postgres/sql/statements.hpp"
#include "postgres/postgres_test.hpp"

namespace dlock::test {

namespace {

using postgres::Durability;

// A session that takes the lock "lock" with a statement, whose answer has the token in this column.
class Locker {
 public:
  Locker(const PostgresServer& server, const std::string& statement, std::size_t column)
      : column_(column), sql_(server.admin_conninfo()) {
    sql_.run("PREPARE take AS " + statement);
  }
  void send(const std::string& arguments) { sql_.send("EXECUTE take(" + arguments + ")"); }
  // The token; nullopt: busy.
  [[nodiscard]] std::optional<std::int64_t> receive() {
    const PostgresReply reply = sql_.receive();
    if (reply.is_error()) throw std::runtime_error(reply.error);
    if (reply.rows.empty() || !reply.rows[0].at(column_)) return std::nullopt;
    return std::stoll(*reply.rows[0][column_]);
  }
  [[nodiscard]] std::optional<std::int64_t> take(const std::string& arguments) {
    send(arguments);
    return receive();
  }
  void await_wait(PostgresServer& server) const {
    server.await("EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pid = " + std::to_string(sql_.backend_pid()) +
                 ")");
  }

 private:
  const std::size_t column_;
  PostgresConnection sql_;
};

// --- The usual statements --------------------------------------------------------------------------------------------

enum class Wrong { token, lease, token_and_lease, holders };

// Our statement waits while another transaction, which has the row, begins and ends a lease.
struct Usual {
  const char* name;
  std::string take;    // $1 owner
  std::string before;  // of the other transaction
  std::string after;   // returns its token
  Wrong wrong;
};

void PrintTo(const Usual& usual, std::ostream* out) {
  *out << usual.name;
}

constexpr const char* free_row =
    "INSERT INTO dlock.lease (name, holder, token, expires_at) VALUES ('lock', '', 1, '-infinity')";

std::vector<Usual> usual_statements() {
  const std::string microseconds = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
  const std::string lease = "clock_timestamp() + interval '60 s'";
  const std::string lock_row = "SELECT FROM dlock.lease FOR UPDATE";
  const std::string insert =
      "INSERT INTO dlock.lease AS l (name, owner, holder, token, expires_at) VALUES ('lock', "
      "$1::text, '', ";
  const auto upsert = [&](const std::string& token) {
    return insert + token + ", " + lease +
           ") ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, token = excluded.token, expires_at = "
           "excluded.expires_at WHERE l.expires_at <= clock_timestamp() RETURNING token";
  };
  const auto token = [](const std::string& value) {
    return "UPDATE dlock.lease SET token = " + value + " RETURNING token";
  };
  return {
      // EXCLUDED was evaluated before the wait.
      {"upsert", upsert(microseconds), lock_row, token(microseconds), Wrong::token_and_lease},
      {"upsert_with_a_sequence", upsert("nextval('dlock.tokens')"), lock_row, token("nextval('dlock.tokens')"),
       Wrong::token},
      {"update_by_now",
       "UPDATE dlock.lease SET owner = $1::text, token = greatest(token + 1, " + microseconds +
           "), expires_at = now() + interval '60 s' WHERE expires_at <= clock_timestamp() RETURNING token",
       lock_row, token(microseconds), Wrong::lease},
      // So a release keeps the row.
      {"insert_after_delete", insert + microseconds + ", " + lease + ") ON CONFLICT (name) DO NOTHING RETURNING token",
       std::string("DELETE FROM dlock.lease; COMMIT; BEGIN; ") + free_row,
       token(microseconds) + "; DELETE FROM dlock.lease RETURNING token", Wrong::token},
      // A subquery is not evaluated again after the wait.
      {"update_after_a_select",
       "UPDATE dlock.lease AS l SET owner = $1::text, token = token + 1, expires_at = " + lease +
           " FROM (SELECT name FROM dlock.lease WHERE expires_at <= clock_timestamp() OFFSET 0) AS f WHERE l.name = "
           "f.name RETURNING token",
       "UPDATE dlock.lease SET owner = 'other', expires_at = 'infinity'", "SELECT 0", Wrong::holders},
  };
}

class UsualStatementTest : public PostgresTest, public testing::WithParamInterface<Usual> {
 protected:
  UsualStatementTest() {
    (void)steady(patient()).initialize();
    server.run("CREATE SEQUENCE dlock.tokens START 1000");
    server.run(free_row);
  }
};
INSTANTIATE_TEST_SUITE_P(, UsualStatementTest, testing::ValuesIn(usual_statements()),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(UsualStatementTest, WaitForAnotherGrant_GrantsWrongly) {
  PostgresConnection other(server.admin_conninfo());
  other.run("BEGIN; " + GetParam().before);
  Locker locker(server, GetParam().take, 0);
  locker.send("'us'");
  locker.await_wait(server);
  const std::int64_t others = std::stoll(other.value(GetParam().after));
  const std::string end = other.value("SELECT clock_timestamp()");
  other.run("COMMIT");
  const auto ours = locker.receive();
  ASSERT_TRUE(ours) << "granted, though another has it";
  const auto wrong = GetParam().wrong;
  if (wrong == Wrong::holders) return;
  EXPECT_EQ(*ours < others, wrong != Wrong::lease);
  if (wrong == Wrong::token) return;
  EXPECT_EQ(server.value("SELECT expires_at - interval '60 s' >= '" + end + "' FROM dlock.lease"), "f");
}

// --- Ours ------------------------------------------------------------------------------------------------------------

struct Ours {
  Strategy strategy;
  bool many;  // arguments are arrays

  [[nodiscard]] std::string sql() const {
    const auto statements = postgres::row_statements(strategy, "dlock", Durability::sync, LockKind::lock);
    return (many ? statements.acquire : statements.acquire_one).sql;
  }
  [[nodiscard]] std::string arguments(const std::string& owner) const {
    if (!many) return "'lock', '" + owner + "', 'holder', 60000, '', 0, 0, ''";
    return "'{lock}', '{" + owner + "}', '{holder}', '{60000}', '{\"\"}', '{0}', '{0}', ''";
  }
};

class PostgresRaceTest : public PostgresTest {
 protected:
  PostgresRaceTest() { (void)steady(patient()).initialize(); }
};

class PostgresOurRaceTest : public PostgresRaceTest, public testing::WithParamInterface<Ours> {
 protected:
  [[nodiscard]] Locker locker() const { return {server, GetParam().sql(), 1}; }
  [[nodiscard]] static std::string as(const std::string& owner) { return GetParam().arguments(owner); }
  // A row whose lock is free, last held a while ago.
  void make_free_row() {
    server.run(optimistic ? "INSERT INTO dlock.optimistic (name, holder, version, token, lease_ms) VALUES ('lock', '', "
                            "1, 1, 1)"
                          : free_row);
  }
  void free() {
    server.run("UPDATE " + table + (optimistic ? " SET owner = NULL" : " SET owner = NULL, expires_at = '-infinity'"));
  }

  const bool optimistic = GetParam().strategy == Strategy::optimistic;
  const std::string table = token_table(GetParam().strategy);
};
INSTANTIATE_TEST_SUITE_P(, PostgresOurRaceTest,
                         testing::Values(Ours{Strategy::table, false}, Ours{Strategy::table, true},
                                         Ours{Strategy::optimistic, false}, Ours{Strategy::optimistic, true}),
                         [](const auto& test) {
                           return strategy_word(test.param.strategy) + (test.param.many ? "_many" : "");
                         });

// The one thing that is waited for: whether a new row of another transaction stays.
TEST_P(PostgresOurRaceTest, RowInsertedByOthers_IsNotGrantedTwice) {
  // Ours ends the wait after a moment; here it is to go on until the other one has decided.
  std::string patient_sql = GetParam().sql();
  const std::string limit = "'lock_timeout', '250'";
  ASSERT_NE(patient_sql.find(limit), std::string::npos);
  patient_sql.replace(patient_sql.find(limit), limit.size(), "'lock_timeout', '0'");
  PostgresConnection other(server.admin_conninfo());
  other.run("PREPARE take AS " + GetParam().sql());
  for (const bool stays : {true, false}) {
    server.run("TRUNCATE " + table);
    other.run("BEGIN");
    ASSERT_EQ(other.query("EXECUTE take(" + as("other") + ")").rows.size(), 1U);
    Locker ours(server, patient_sql, 1);
    ours.send(as("us"));
    ours.await_wait(server);
    other.run(stays ? "COMMIT" : "ROLLBACK");
    EXPECT_EQ(ours.receive().has_value(), !stays);
    EXPECT_EQ(server.value("SELECT owner FROM " + table), stays ? "other" : "us");
  }
}

// A trigger runs after the values were evaluated, as everything else that makes a server slow: the row stays locked
// meanwhile, so nothing is granted in between.
TEST_P(PostgresOurRaceTest, SlowGrant_KeepsOthersOutAndTokensInOrder) {
  make_free_row();
  server.run(
      "CREATE FUNCTION dlock.dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "PERFORM pg_advisory_xact_lock_shared(7); RETURN NEW; END $$");
  server.run("CREATE TRIGGER dawdle BEFORE UPDATE ON " + table + " FOR EACH ROW EXECUTE FUNCTION dlock.dawdle()");
  PostgresConnection brake(server.admin_conninfo());
  brake.run("SELECT pg_advisory_lock(7)");
  Locker slow = locker();
  slow.send(as("slow"));
  slow.await_wait(server);
  Locker quick = locker();
  EXPECT_FALSE(quick.take(as("quick"))) << "busy, at once";
  brake.run("SELECT pg_advisory_unlock(7)");
  const auto first = slow.receive();
  ASSERT_TRUE(first);
  EXPECT_FALSE(quick.take(as("quick")));
  free();
  const auto second = quick.take(as("quick"));
  ASSERT_TRUE(second);
  EXPECT_GT(*second, *first);
}

TEST_P(PostgresOurRaceTest, ManyAtAFreeRow_GrantsOne) {
  constexpr std::size_t racers = 6;
  constexpr int rounds = 60;
  make_free_row();
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
    free();
  };
  std::barrier begin(racers);
  std::barrier end(racers, judge);
  {
    std::vector<std::jthread> threads;
    for (std::size_t racer = 0; racer < racers; ++racer) {
      threads.emplace_back([&, racer] {
        Locker own = locker();
        for (int round = 0; round < rounds; ++round) {
          begin.arrive_and_wait();
          answers[racer] = own.take(as(std::to_string(round) + "-" + std::to_string(racer)));
          end.arrive_and_wait();
        }
      });
    }
  }
  EXPECT_EQ(granted_wrongly, 0) << "rounds in which not exactly one got it";
  EXPECT_TRUE(std::is_sorted(tokens.begin(), tokens.end(), std::less_equal<>())) << "smaller or equal tokens";
}

// A client that sees the same version for the time of a lease takes the holder for dead.
TEST_F(PostgresRaceTest, EachStatement_GivesARowANewVersion) {
  const auto use = postgres::optimistic_statements("dlock", Durability::sync);
  const std::string alone = "'lock', 'us', 'h', 60000, '', 0, 0, ''";
  const std::string many = "'{lock}', '{us}', '{h}', '{60000}', '{\"\"}', '{0}', '{0}', ''";
  const struct {
    const char* what;
    const postgres::Statement& statement;
    std::string arguments;
  } steps[] = {
      {"the first grant", use.acquire_one, alone},
      {"a renewal", use.renew, "'{lock}', '{us}', '{60000}'"},
      {"a renewal alone", use.renew_one, "'lock', 'us', 60000"},
      {"a grant to the owner", use.acquire, many},
      {"such a grant alone", use.acquire_one, alone},
      {"a release", use.release, "'{lock}', '{us}', '{0}', ''"},
      {"a grant", use.acquire, many},
      {"a release alone", use.release_one, "'lock', 'us', 0, ''"},
      {"a grant alone", use.acquire_one, alone},
      {"a break", use.break_lock, "'lock', ''"},
  };
  PostgresConnection sql(server.admin_conninfo());
  std::int64_t last = 0;
  for (const auto& [what, statement, arguments] : steps) {
    sql.run("DEALLOCATE ALL; PREPARE s AS " + statement.sql);
    EXPECT_EQ(sql.query("EXECUTE s(" + arguments + ")").rows.size(), 1U) << what;
    const std::int64_t version = std::stoll(server.value("SELECT version FROM dlock.optimistic"));
    EXPECT_GT(version, last) << what;
    last = version;
  }
}

}  // namespace

}  // namespace dlock::test
