// Where locks live with their session, --lease is the session's.
#include <optional>
#include <string>

#include "support/cli_test.hpp"
#include "tests/support/zookeeper_server.hpp"

namespace dlock::cli::test {
namespace {

using dlock::test::ZooKeeperServer;
using testing::HasSubstr;

class SessionLease : public testing::Test {
 protected:
  // What the server says of its connections while a command runs.
  std::string connections(const std::string& parameters, const std::string& lease) {
    Process run({dlock_path(), "run", "--url", server.url(parameters), "--lease", lease, "job", "--", "sh", "-c",
                 "echo in; cat"});
    EXPECT_EQ(run.line(), "in");
    const std::string answer = server.ask("cons");
    EXPECT_EQ(run.finish().status, 0);
    return answer;
  }

  ZooKeeperServer server;
};

TEST_F(SessionLease, IsTheSessionTimeout) {
  EXPECT_THAT(connections("", "5s"), HasSubstr(",to=5000,"));
}

TEST_F(SessionLease, MayBeLongerThanTheUsualOne) {
  EXPECT_THAT(connections("", "1m"), HasSubstr(",to=60000,"));
}

TEST_F(SessionLease, GoesBeforeTheLeaseInTheUrl) {
  EXPECT_THAT(connections("lease=2m", "5s"), HasSubstr(",to=5000,"));
  EXPECT_THAT(connections("strategy=sequential-herd&lease=5s&sessions=1", "1m"), HasSubstr(",to=60000,"));
}

// The server does not grant so little, and no network would allow for it.
TEST_F(SessionLease, MayBeShorterThanAnySession) {
  EXPECT_THAT(connections("", "50ms"), HasSubstr(",to=1000,"));
}

TEST_F(SessionLease, IsRefusedWhereTheUrlSaysAnotherTime) {
  EXPECT_THAT(connections("session_timeout=7s", "7000ms"), HasSubstr(",to=7000,"));
  for (const std::string lease : {"5s", "9s"}) {
    const Finished refused =
        run({dlock_path(), "run", "--url", server.url("session_timeout=7s"), "--lease", lease, "job", "--", "true"});
    EXPECT_EQ(refused.status, 64);
    EXPECT_THAT(refused.err, HasSubstr("--lease (" + lease.substr(0, 1) + ".0 s) contradicts session_timeout=7s"));
  }
}

}  // namespace
}  // namespace dlock::cli::test
