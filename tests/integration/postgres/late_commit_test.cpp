// A commit that takes longer than its client waits for an answer, as it does where a standby has to confirm it.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <dlock/dlock.hpp>

#include "integration_test.hpp"
#include "postgres_test.hpp"
#include "tests/support/postgres_connection.hpp"

namespace dlock::test {

namespace {

using namespace std::chrono_literals;

class PostgresLateCommitTest : public PostgresTest, public testing::WithParamInterface<std::pair<Strategy, LockKind>> {
 protected:
  PostgresLateCommitTest() {
    {
      Client client = steady(patient(), strategy());
      (void)client.initialize();
      (void)try_acquire(client).value().release();  // the row is there
    }
    await_in_server(asking(0));
    // The session's client is gone by then, for which the server would roll the transaction back.
    server.run(
        "CREATE FUNCTION public.late() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0 "
        "SET client_connection_check_interval = 0 AS $$ BEGIN "
        "PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END $$;"
        "GRANT EXECUTE ON FUNCTION public.late() TO PUBLIC;"
        "CREATE CONSTRAINT TRIGGER late AFTER INSERT OR UPDATE ON dlock." +
        postgres::table_of(GetParam().first == Strategy::table ? "lease" : "optimistic", GetParam().second) +
        " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.late()");
  }
  [[nodiscard]] static std::string strategy() {
    return "strategy=" + std::string(postgres::to_string(GetParam().first));
  }
  // So many sessions have asked something about the row, and have their answer or are kept waiting for it.
  [[nodiscard]] static std::string asking(int sessions) {
    return std::to_string(sessions) + " = (SELECT count(*) FROM pg_stat_activity WHERE usename = '" +
           std::string(PostgresServer::user) +
           "' AND query LIKE '%WITH _ AS%MATERIALIZED%' AND (state = 'idle' OR wait_event_type = 'Lock'))";
  }
  static std::optional<Lease> try_acquire(Client& client) {
    std::error_code error;
    return GetParam().second == LockKind::semaphore ? client.make_semaphore("x", 2).try_acquire({.lease = 10min}, error)
                                                    : client.make_lock("x").try_acquire({.lease = 10min}, error);
  }

  const PostgresLock lock_{GetParam().first, "x", GetParam().second};
};

INSTANTIATE_TEST_SUITE_P(Rows, PostgresLateCommitTest,
                         testing::Values(std::pair(Strategy::table, LockKind::lock),
                                         std::pair(Strategy::optimistic, LockKind::lock),
                                         std::pair(Strategy::table, LockKind::semaphore)),
                         [](const auto& row) {
                           return std::string(postgres::to_string(row.param.first)) +
                                  (row.param.second == LockKind::semaphore ? "_semaphore" : "");
                         });

TEST_P(PostgresLateCommitTest, LeavesNothingOfAnOwnerThatGaveUp) {
  std::optional<Client> client = steady({.response_timeout = 300ms, .close_timeout = 1min}, strategy());
  PostgresConnection slow(server.admin_conninfo());
  slow.run("SELECT pg_advisory_lock(1)");
  EXPECT_FALSE(try_acquire(*client)) << "no answer in time";
  await_in_server(asking(2));  // its release, over another connection
  slow.run("SELECT pg_advisory_unlock(1)");
  await_in_server(asking(1));
  client.reset();
  EXPECT_EQ(server.value(lock_.residue()), "0");
}

}  // namespace

}  // namespace dlock::test
