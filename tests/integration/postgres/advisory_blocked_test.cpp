// Somebody else has locked a row of the tokens, or all of them: whoever takes such a lock has to wait, and nobody else.
#include <optional>
#include <string>
#include <vector>

#include "postgres/advisory_test.hpp"

namespace dlock::test {

namespace {

class AdvisoryBlockedTest : public AdvisoryTest {
 protected:
  // Long enough for a busy machine; a session that is held up loses its locks within it.
  static constexpr auto lease_time = 6s;

  AdvisoryBlockedTest() {
    make_schema();
    ours.emplace(connect_patiently(server.url(advisory), {.lease = lease_time}));
    DistributedLock lock = ours->make_lock("b");
    EXPECT_TRUE(take(lock).release());
  }

  // While `blocker` goes on: one lock is held, for longer than its lease, another one is tried and waited for.
  void expect_that_only_one_waits(const std::string& blocker) {
    // On each of the client's sessions.
    std::vector<Lease> leases;
    for (const char* const name : {"a/1", "a/2", "a/3", "a/4", "a/5", "a/6"}) {
      DistributedLock lock = ours->make_lock(name);
      leases.push_back(take(lock));
    }
    DistributedLock blocked = ours->make_lock("b");
    PostgresConnection sql(server.admin_conninfo());
    sql.run("BEGIN");
    sql.run(blocker);
    const std::string start = server.value("SELECT clock_timestamp()");
    try {
      EXPECT_FALSE(blocked.try_acquire().has_value());
      ADD_FAILURE() << "it is not somebody else who has the lock";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), errc::unavailable) << error.what();
    }
    Pending waiting(blocked, {});
    await_in_server("clock_timestamp() > '" + start + "'::timestamptz + interval '7 s'");
    for (const Lease& lease : leases) EXPECT_TRUE(lease.held());
    EXPECT_FALSE(waiting.done());
    sql.run("ROLLBACK");
    EXPECT_TRUE(waiting.lease().release());
    for (Lease& lease : leases) EXPECT_TRUE(lease.release());
    await_count(true, 0);
  }

  std::optional<Client> ours;
};

TEST_F(AdvisoryBlockedTest, ARowThatSomebodyHasLockedHoldsUpNoOtherLock) {
  expect_that_only_one_waits("SELECT FROM dlock.fence WHERE name = 'b' FOR UPDATE");
}

TEST_F(AdvisoryBlockedTest, AnIndexThatIsBeingMadeCostsNoLock) {
  expect_that_only_one_waits("CREATE INDEX ON dlock.fence (pid)");
}

TEST_F(AdvisoryBlockedTest, LocksOfOneNameWithDifferentKeysHaveDifferentRows) {
  PostgresConnection sql(server.admin_conninfo());
  sql.run("BEGIN; SELECT FROM dlock.fence WHERE name = 'b' FOR UPDATE");
  for (const std::string key : {"int64:42", "pair:0,42", "hashtextextended", "crc32pair", "medallion"}) {
    const Client other = client("key=" + key);
    DistributedLock lock = other.make_lock("b");
    Lease lease = take(lock);
    const LockInfo info = other.inspect("b");
    EXPECT_EQ(info.name, "b") << key;
    EXPECT_TRUE(info.held) << key;
    EXPECT_EQ(info.token, lease.token()) << key;
    int held = 0;
    for (const LockInfo& each : other.list()) held += each.held && each.name == "b" && each.token == lease.token();
    EXPECT_EQ(held, 1) << key;
    EXPECT_TRUE(lease.release()) << key;
    Lease next = take(lock);
    EXPECT_GT(next.token(), lease.token()) << key;
    EXPECT_TRUE(next.release());
  }
  sql.run("ROLLBACK");
  EXPECT_EQ(server.value("SELECT string_agg(name, ' ' ORDER BY name) FROM dlock.fence WHERE strpos(name, chr(9)) = 0"),
            "b first")
      << "the layout of the default key";
}

}  // namespace

}  // namespace dlock::test
