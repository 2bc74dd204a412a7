// Locks and semaphores of kazoo itself (Debian: python3-kazoo) on the nodes of ours.
#include <csignal>
#include <regex>

#include "torture/rig/child_process.hpp"
#include "zookeeper/zookeeper_test.hpp"

namespace dlock::test {

namespace {

// Takes what the third argument says at the path, waits for SIGTERM, and lets go; or only tries.
constexpr const char* program = R"py(
import logging, signal, sys
from kazoo.client import KazooClient
from kazoo.recipe.lock import Lock
logging.basicConfig()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
address, path, what, how = sys.argv[1:]
class LikeCurator(Lock):
  _NODE_NAME = "-lock-"
  _EXCLUDE_NAMES = ["-lock-"]
zk = KazooClient(hosts=address)
zk.start()
make = {
  "Lock": lambda: zk.Lock(path, "kazoo"),
  "ReadLock": lambda: zk.ReadLock(path, "kazoo"),
  "WriteLock": lambda: zk.WriteLock(path, "kazoo"),
  "PatternLock": lambda: zk.Lock(path, "kazoo", extra_lock_patterns=["-lock-"]),
  "LikeCurator": lambda: LikeCurator(zk, path, "kazoo"),
  "Semaphore": lambda: zk.Semaphore(path, "kazoo", max_leases=1),
}
lock = make[what]()
held = lock.acquire(blocking=(how == "wait"))
print("held" if held else "busy", flush=True)
if held:
  if how == "wait":
    signal.sigwait([signal.SIGTERM])
  lock.release()
zk.stop()
print("over", flush=True)
)py";

struct Pair {
  const char* kazoo;
  const char* parameters;
};

constexpr Pair exclusive[] = {{"Lock", "layout=kazoo"},
                              {"WriteLock", "layout=kazoo"},
                              {"ReadLock", "layout=kazoo"},
                              {"LikeCurator", "layout=curator"},
                              {"LikeCurator", "strategy=sequential-herd"}};

class KazooTest : public ZooKeeperTest {
 protected:
  [[nodiscard]] Client client_of(const std::string& parameters) const {
    return steady({}, parameters + "&" + long_session);
  }
  [[nodiscard]] rig::ChildProcess start(const std::string& what, const std::string& name,
                                        const std::string& how) const {
    return rig::ChildProcess({"/usr/bin/python3", "-c", program, server.address(), path(name), what, how});
  }
  // Waits until it says so.
  static void expect(const rig::ChildProcess& kazoo, const std::string& word) {
    ASSERT_TRUE(kazoo.wait_for_output(word)) << kazoo.output();
  }
  static void let_go(rig::ChildProcess& kazoo) {
    kazoo.signal(SIGTERM);
    EXPECT_EQ(kazoo.wait(), 0) << kazoo.output();
  }
  static void expect_refused(const Client& client, const std::string& name, const std::string& named) {
    DistributedLock lock = client.lock(name);
    for (const auto wait : {std::chrono::nanoseconds(0), std::chrono::nanoseconds(conformance::guard())}) {
      try {
        (void)lock.acquire({.wait = wait});
        ADD_FAILURE() << "the lock was taken";
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), errc::protocol) << e.what();
        EXPECT_NE(e.detail().find(named), std::string::npos) << e.detail();
        EXPECT_NE(e.detail().find(path(name)), std::string::npos) << e.detail();
      }
    }
  }
};

TEST_F(KazooTest, ItsLocksAndOursExcludeEachOther) {
  int n = 0;
  for (const Pair& pair : exclusive) {
    SCOPED_TRACE(std::string(pair.kazoo) + ", " + pair.parameters);
    const std::string name = "shared-" + std::to_string(++n);
    const Client client = client_of(pair.parameters);
    DistributedLock lock = client.lock(name);
    rig::ChildProcess holder = start(pair.kazoo, name, "wait");
    ASSERT_NO_FATAL_FAILURE(expect(holder, "held"));
    EXPECT_FALSE(lock.try_acquire().has_value());
    EXPECT_EQ(client.inspect(name).holder, "kazoo");
    Pending waiting(lock, {});
    await_residue(name, 2);
    let_go(holder);
    Lease lease = waiting.lease();
    EXPECT_TRUE(lease.held());

    rig::ChildProcess other = start(pair.kazoo, name, "try");
    ASSERT_NO_FATAL_FAILURE(expect(other, "busy"));
    EXPECT_EQ(other.wait(), 0);
    EXPECT_TRUE(lease.release());
  }
}

// It goes on making nodes that ours, and Curator, do not know.
TEST_F(KazooTest, ALockThatOnlyLooksForOursIsRefused) {
  rig::ChildProcess holder = start("PatternLock", "shared", "wait");
  ASSERT_NO_FATAL_FAILURE(expect(holder, "held"));
  expect_refused(client_of("layout=curator"), "shared", "kazoo");
  let_go(holder);
}

TEST_F(KazooTest, NobodyIsLetInBesideItsSemaphore) {
  rig::ChildProcess holder = start("Semaphore", "shared", "wait");
  ASSERT_NO_FATAL_FAILURE(expect(holder, "held"));
  ASSERT_EQ(queue("shared").size(), 1U);
  EXPECT_TRUE(std::regex_match(queue("shared").front(), std::regex("[0-9a-f]{32}"))) << queue("shared").front();
  for (const std::string parameters : {"layout=curator", "layout=kazoo", "strategy=sequential-herd"}) {
    SCOPED_TRACE(parameters);
    const Client client = client_of(parameters);
    expect_refused(client, "shared", "kazoo's semaphore");
    EXPECT_THROW((void)client.inspect("shared"), Error);
    EXPECT_THROW((void)client.break_lock("shared"), Error);
  }
  expect_refused(client_of("strategy=ephemeral"), "shared", "not ephemeral");
  EXPECT_EQ(queue("shared").size(), 1U) << "nothing of ours is left";
  let_go(holder);
  for (const std::string parameters : {"layout=curator", "layout=kazoo", "strategy=sequential-herd"}) {
    const Client client = client_of(parameters);
    DistributedLock lock = client.lock("shared");
    EXPECT_TRUE(take(lock).held()) << parameters;
  }
}

}  // namespace

}  // namespace dlock::test
