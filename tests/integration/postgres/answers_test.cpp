// What a real server says besides rows: warnings, and refusals when everything seemed to be done.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "live_connection.hpp"
#include "postgres/shared_server.hpp"

namespace dlock::test {

namespace {

using postgres::Problem;

class PostgresAnswersTest : public OnSharedServer<> {
 protected:
};

TEST_F(PostgresAnswersTest, RowsOfATransactionWhoseCommitIsRefusedDoNotCount) {
  LiveConnection connection(server.url());
  ASSERT_TRUE(connection.open());
  (void)connection.ask("CREATE TEMPORARY TABLE once(i int UNIQUE DEFERRABLE INITIALLY DEFERRED)")->outcome();
  (void)connection.ask("INSERT INTO pg_temp.once VALUES (1)")->outcome();
  // Each of the commands answers with its row; the constraint is looked at by the commit.
  const auto twice =
      connection.ask({.commands = {{.text = "INSERT INTO pg_temp.once VALUES (1) RETURNING i"}, {.text = "SELECT 2"}}});
  const auto next = connection.ask("SELECT count(*) FROM pg_temp.once");
  EXPECT_EQ(twice->outcome().problem, Problem::refused);
  EXPECT_EQ(twice->outcome().sqlstate, "23505");
  EXPECT_EQ(twice->outcome().failed_command, 2U) << "no command of the two";
  EXPECT_TRUE(twice->results().empty());
  EXPECT_EQ(next->value(), "1");
}

TEST_F(PostgresAnswersTest, WarningsToWhoeverLogsInAreNotPrinted) {
  server.run("UPDATE pg_database SET datcollversion = 'none' WHERE datname = current_database()");
  testing::internal::CaptureStderr();
  LiveConnection connection(server.url());
  const bool open = connection.open();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_TRUE(open);
}

}  // namespace

}  // namespace dlock::test
