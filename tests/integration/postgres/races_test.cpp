// The statements of the row strategies where they meet others' on a real server.
#include <algorithm>
#include <barrier>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backends/postgres/sql/statements.hpp"
#include "postgres/postgres_test.hpp"

namespace dlock::test {

namespace {

// A session that takes the lock "lock" with a statement.
class Locker {
 public:
  Locker(const PostgresServer& server, const std::string& statement) : sql_(server.admin_conninfo()) {
    sql_.run("PREPARE take AS " + statement);
  }
  void send(const std::string& arguments) { sql_.send("EXECUTE take(" + arguments + ")"); }
  // The token; nullopt: busy.
  [[nodiscard]] std::optional<std::int64_t> receive() {
    const PostgresReply reply = sql_.receive();
    if (reply.is_error()) throw std::runtime_error(reply.error);
    if (reply.rows.empty() || !reply.rows[0].at(1)) return std::nullopt;
    return std::stoll(*reply.rows[0][1]);
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
  PostgresConnection sql_;
};

struct Ours {
  Strategy strategy;
  bool many;  // arguments are arrays

  [[nodiscard]] std::string sql() const {
    const auto statements = postgres::row_statements(strategy, "dlock", postgres::Durability::sync, LockKind::lock);
    return (many ? statements.acquire : statements.acquire_one).sql;
  }
  [[nodiscard]] std::string arguments(const std::string& owner) const {
    if (!many) return "'lock', '" + owner + "', 'holder', 60000, '', 0, 0, ''";
    return "'{lock}', '{" + owner + "}', '{holder}', '{60000}', '{\"\"}', '{0}', '{0}', ''";
  }
};

class PostgresOurRaceTest : public PostgresTest, public testing::WithParamInterface<Ours> {
 protected:
  PostgresOurRaceTest() { (void)steady(patient()).initialize(); }

  [[nodiscard]] Locker locker() const { return {server, GetParam().sql()}; }
  [[nodiscard]] static std::string as(const std::string& owner) { return GetParam().arguments(owner); }
  // A row whose lock is free, last held a while ago.
  void make_free_row() {
    server.run(optimistic
                   ? "INSERT INTO dlock.optimistic (name, holder, version, token, lease_ms) VALUES ('lock', '', "
                     "1, 1, 1)"
                   : "INSERT INTO dlock.lease (name, holder, token, expires_at) VALUES ('lock', '', 1, '-infinity')");
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

}  // namespace

}  // namespace dlock::test
