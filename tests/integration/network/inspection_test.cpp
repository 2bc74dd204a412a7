// Questions of people and tools about locks; names that look like code in every operation.
#include <deque>
#include <set>

#include "network/room.hpp"

namespace dlock::test {

namespace {

class InspectionTest : public Room {};

// Shows: hole broken-by-hand
TEST_P(InspectionTest, Break_EndsThatLockOnly) {
  Contender ours(steady({.lease = 6s}), "broken");
  Contender other(steady(), "whole");
  const Lease lease = take(ours.lock);
  const Lease whole = take(other.lock);
  const LossEvent loss(lease);
  EXPECT_TRUE(other.client.break_lock("broken"));
  loss.event().wait("the holder is not told");
  EXPECT_TRUE(whole.held());
  EXPECT_TRUE(ours.client.inspect("whole").held);
  EXPECT_FALSE(other.client.break_lock("broken"));
  EXPECT_FALSE(other.client.break_lock("never-there"));
  EXPECT_GT(take(ours.lock).token(), lease.token());
}

TEST_P(InspectionTest, Diagnose_FindsNoErrorAndLeavesNothing) {
  const Client client = steady();
  for (const bool used : {false, true}) {
    if (used) warm_up(client);
    for (const Finding& each : client.diagnose()) {
      EXPECT_NE(each.severity, Finding::Severity::error) << each.check << ": " << each.message;
    }
    for (const LockInfo& each : client.list()) EXPECT_EQ(each.name, "warm");
  }
}

// Code, or markup, to some service or to its client's way of sending names; in the order of their bytes, none twice.
std::vector<std::string> hostile_names() {
  std::set<std::string> names;
  // SQL, arrays of SQL, and dlock's own templates of it
  for (const char* const name :
       {"\"", "\"\"", "'", "''", "\"; DROP SCHEMA dlock CASCADE; --", "'; DELETE FROM dlock.lease; --", "a\".\"b", "$1",
        "$2::text", "$$", "/* x */", "-- x", "E'\\''", "U&\"\"", "SELECT", "NULL", "null", "{}", "{a,b}", "{\"a\"}",
        ",", "a,b", "\\", "\\\\", "\\x41", "\\\"", "{lease}", "{now}", "{{us}}", ":x", "?", "x'y",
        // patterns, formats, hash tags, paths
        "%", "%s%n", "_", "*", "[a]", "{a}b", "a/b", "..", "../a", "a:b", "dlock:x", "a.b", " ", "  ", " x ",
        // case, and Unicode
        "lock", "LOCK", "Lock", "\u00e9", "e\u0301", "\u01c5", "\u2019", "\uff02", "\ufeff", "\u200b", "\u6f22\u5b57",
        "\U0001f512"}) {
    names.insert(name);
  }
  for (const char each : {'\'', '"', '\\', '{', '%'}) names.insert(std::string(512, each));
  return {names.begin(), names.end()};
}

// Where few locks can be held at a time, so many names at a time.
// Hazard: names that are SQL
TEST_P(InspectionTest, HostileNamesInEachOperation_AreOnlyNames) {
  const auto log = std::make_shared<EventLog>();
  const Client holder = steady({.label = "'\"\\{}$1%s", .lease = 12s, .observer = log});
  const Client other = steady();
  warm_up(holder);
  const std::vector<std::string> names = hostile_names();
  const std::size_t at_once = ends_with_connection() ? 9 : names.size();
  for (std::size_t begin = 0; begin < names.size(); begin += at_once) {
    const std::vector<std::string> some(
        names.begin() + static_cast<std::ptrdiff_t>(begin),
        names.begin() + static_cast<std::ptrdiff_t>(std::min(begin + at_once, names.size())));
    std::deque<DistributedLock> locks;
    std::deque<DistributedLock> others;
    std::deque<Pending> taking;
    std::deque<Lease> leases;
    for (const std::string& name : some) {
      locks.push_back(holder.make_lock(name));
      others.push_back(other.make_lock(name));
    }
    for (DistributedLock& lock : locks) taking.emplace_back(lock, AcquireOptions{});  // most of them together
    for (Pending& each : taking) leases.push_back(each.lease());
    std::vector<std::string> listed;
    for (const LockInfo& each : other.list()) {
      if (each.held) listed.push_back(each.name);
    }
    EXPECT_EQ(listed, some);
    std::deque<Pending> waiting;
    for (std::size_t i = 0; i < some.size(); ++i) {
      const LockInfo info = other.inspect(some[i]);
      EXPECT_EQ(info.name, some[i]);
      EXPECT_EQ(info.token, leases[i].token()) << some[i];
      EXPECT_EQ(info.holder, holder.holder()) << some[i];
      EXPECT_FALSE(others[i].try_acquire()) << some[i];
      if (i % 2 == 0) waiting.emplace_back(others[i], AcquireOptions{});
    }
    for (std::size_t i = 0; i < some.size(); i += 2) await_waiter(some[i]);
    if (holder.capabilities().lease_kind == LeaseKind::per_lock) await_renewals(*log, some.size());
    for (Lease& lease : leases) EXPECT_TRUE(lease.release()) << lease.name();
    for (Pending& each : waiting) {
      const Lease lease = each.lease();
      // With its session, another lock of the client may have been lost already.
      EXPECT_TRUE(other.break_lock(lease.name()) || ends_with_connection()) << lease.name();
    }
    for (const std::string& name : some) await_no_residue(name);
    if (!other.capabilities().can_forget) continue;
    service.age(2min);
    for (std::size_t i = 1; i < some.size(); i += 2) {  // a service may keep names for a while that were waited for
      const bool remembered = service.remembers(GetParam(), some[i]);
      EXPECT_EQ(other.forget(some[i]), remembered) << some[i];
      EXPECT_FALSE(service.remembers(GetParam(), some[i])) << some[i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, InspectionTest, ::testing::ValuesIn(tested_strategies()), Room::strategy_name);

}  // namespace

}  // namespace dlock::test
