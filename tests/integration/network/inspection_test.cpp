// Questions of people and tools about locks; names that look like code in every operation. Names that are no longer
// used are forgotten, those in use are not, and tokens grow all the same.
#include <array>
#include <atomic>
#include <deque>
#include <set>
#include <thread>

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

// --- Names that are forgotten ---

class ForgettingTest : public Room {
 protected:
  static void use(const Client& client, const std::string& name) {
    DistributedLock lock = client.make_lock(name);
    EXPECT_TRUE(take(lock).release());
  }
  // Why the name stays.
  static std::string refusal(const Client& client, const std::string& name) {
    const Failure failure = failure_of([&] { (void)client.forget(name); });
    EXPECT_EQ(failure.code, errc::timed_out) << name << ": " << failure.detail;
    return failure.detail;
  }
  // All that are forgotten until no more are.
  static std::vector<std::string> forget_idle(const Client& client, Duration idle) {
    std::vector<std::string> all;
    for (auto some = client.forget_idle(idle); !some.empty(); some = client.forget_idle(idle)) {
      all.insert(all.end(), some.begin(), some.end());
    }
    std::sort(all.begin(), all.end());
    return all;
  }
};

// Shows: forgetting
TEST_P(ForgettingTest, ForgottenName_LeavesNothing) {
  Contender ours(steady(), "a/b");
  Lease lease = take(ours.lock);
  const FencingToken before = lease.token();
  EXPECT_TRUE(lease.release());
  use(ours.client, "other");
  service.age(2min);
  const bool remembered = service.remembers(GetParam(), "a/b");
  EXPECT_EQ(ours.client.forget("a/b"), remembered);
  EXPECT_FALSE(service.remembers(GetParam(), "a/b"));
  for (const LockInfo& each : ours.client.list()) EXPECT_NE(each.name, "a/b");
  EXPECT_FALSE(ours.client.forget("a/b"));
  EXPECT_EQ(service.remembers(GetParam(), "other"), remembered);
  EXPECT_GT(take(ours.lock).token(), before);
}

// Shows: forgetting
TEST_P(ForgettingTest, HeldOrAwaitedLock_IsKept) {
  Contender holding(steady({.label = "holding"}), "x");
  Contender waiting(steady(), "x");
  const Client other = steady();
  use(holding.client, "x");
  service.age(48h);
  Lease lease = take(holding.lock);
  const FencingToken before = lease.token();
  service.age(48h);
  EXPECT_NE(refusal(other, "x").find("is held by " + holding.client.holder()), std::string::npos);
  EXPECT_NE(refusal(holding.client, "x").find("is held by " + holding.client.holder()), std::string::npos)
      << "not even by itself";
  Pending pending(waiting.lock, {});
  await_waiter("x");
  (void)refusal(other, "x");
  if (other.capabilities().can_forget_idle) {
    EXPECT_TRUE(forget_idle(other, 1h).empty());
    EXPECT_TRUE(forget_idle(holding.client, 1h).empty());
  }
  EXPECT_TRUE(lease.held());
  EXPECT_FALSE(other.make_lock("x").try_acquire().has_value());
  EXPECT_TRUE(lease.release());
  EXPECT_GT(pending.lease().token(), before);
}

TEST_P(ForgettingTest, TokenAheadOfTheClock_IsKept) {
  const Client client = steady();
  if (!client.capabilities().can_forget_idle) GTEST_SKIP() << "this service remembers no tokens";
  use(client, "x");
  EXPECT_NE(refusal(client, "x").find("minute"), std::string::npos);
  service.age(-48h);  // as if the clock had been set back since
  EXPECT_NE(refusal(client, "x").find("ahead of the service's clock"), std::string::npos);
  EXPECT_TRUE(forget_idle(client, 1min).empty());
  EXPECT_TRUE(service.remembers(GetParam(), "x"));
}

TEST_P(ForgettingTest, IdleNames_AreForgottenByAge) {
  const Client client = steady();
  EXPECT_THROW((void)client.forget_idle(59s), Error);
  EXPECT_THROW((void)client.forget_idle(-1s), Error);
  const std::vector<std::string> old = {"%", "..", "a/b", "\xc3\xa9"};
  for (const std::string& name : old) use(client, name);
  if (!client.capabilities().can_forget_idle) {
    return expect_failure(errc::unsupported, "", [&] { (void)client.forget_idle(1min); });  // it cannot know
  }
  service.age(2h);
  use(client, "young");
  EXPECT_TRUE(forget_idle(client, forever).empty());
  EXPECT_TRUE(forget_idle(client, 3h).empty());
  EXPECT_EQ(forget_idle(client, 1h), old);
  for (const std::string& name : old) EXPECT_FALSE(service.remembers(GetParam(), name)) << name;
  EXPECT_TRUE(service.remembers(GetParam(), "young"));
}

TEST_P(ForgettingTest, ManyNames_AreForgottenInBatches) {
  const Client client = steady();
  if (!client.capabilities().can_forget_idle) GTEST_SKIP() << "names have to be named";
  constexpr int many = 250;
  for (int i = 0; i < many; ++i) use(client, "many/" + std::to_string(i));
  service.age(2h);
  const auto forgotten = forget_idle(client, 1h);
  EXPECT_EQ(forgotten.size(), static_cast<std::size_t>(many));
  EXPECT_EQ(std::adjacent_find(forgotten.begin(), forgotten.end()), forgotten.end()) << "told twice";
  EXPECT_TRUE(client.list().empty());
}

// Every holder of a lock checks this.
struct Guarded {
  std::string name;
  std::atomic<int> inside = 0;
  std::uint64_t last_token = 0;
};

// Shows: forgetting
TEST_P(ForgettingTest, ConcurrentForgetting_KeepsAcquiresSafe) {
  constexpr int threads = 3;
  constexpr std::size_t enough = 100;
  const bool leaves_nothing = strategy() == "strategy=ephemeral";
  const int most_passes = leaves_nothing ? 10 : 300;
  std::array<Guarded, 24> resources;
  for (std::size_t i = 0; i < resources.size(); ++i) resources[i].name = "busy/" + std::to_string(i);
  const Client forgetting = steady();
  warm_up(forgetting);
  std::atomic<bool> stop = false;
  std::atomic<int> acquired = 0;
  const auto work = [&](std::size_t at) {
    const Client client = steady();
    for (std::size_t step = 1 + at; !stop; at += step) {
      Guarded& resource = resources[at % resources.size()];
      DistributedLock lock = client.make_lock(resource.name);
      Lease lease = take(lock);
      EXPECT_EQ(resource.inside.fetch_add(1), 0) << resource.name << " is held twice";
      EXPECT_GT(lease.token().value(), resource.last_token) << resource.name;
      resource.last_token = lease.token().value();
      resource.inside.fetch_sub(1);
      EXPECT_TRUE(lease.release());
      ++acquired;
    }
  };
  std::size_t removed = 0;
  {
    std::vector<std::jthread> workers;
    for (std::size_t i = 0; i < threads; ++i) workers.emplace_back(work, i);
    const bool by_age = forgetting.capabilities().can_forget_idle;
    for (int pass = 0; pass < most_passes && removed < enough && !HasFailure(); ++pass) {
      service.age(2min);
      if (by_age && pass % 2 == 0) removed += forgetting.forget_idle(1min).size();
      for (const Guarded& resource : resources) {
        try {
          if (forgetting.forget(resource.name)) ++removed;
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), errc::timed_out) << error.what();
        }
      }
    }
    stop = true;
  }
  EXPECT_GT(acquired, 0);
  EXPECT_TRUE(removed > 0 || leaves_nothing) << "nothing was tested";
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ForgettingTest);
INSTANTIATE_TEST_SUITE_P(, ForgettingTest, ::testing::ValuesIn(tested_strategies(service_kind().keeps_free_locks)),
                         Room::strategy_name);

}  // namespace

}  // namespace dlock::test
