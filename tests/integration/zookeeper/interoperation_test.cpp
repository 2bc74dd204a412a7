// Locks of other programs on the nodes of ours: Curator's, kazoo's and those of ZooKeeper's recipe, by these programs
// themselves. Nodes of programs that are not there: tests/unit/zookeeper/queue_walk_test.cpp.
#include <chrono>
#include <future>
#include <iterator>
#include <string>
#include <vector>

#include "zookeeper/interoperation_test.hpp"

namespace dlock::test {

namespace {

void expect_refusal(const Client& client, const std::string& name, const std::string& named) {
  DistributedLock lock = client.make_lock(name);
  for (const auto wait : {std::chrono::nanoseconds(0), std::chrono::nanoseconds(conformance::guard())}) {
    for (const std::string& text : {named, Tree::path(name)}) {
      expect_failure(errc::protocol, text, [&] { (void)lock.acquire({.wait = wait}); });
    }
  }
}

// --- Who share a lock ------------------------------------------------------------------------------------------------

constexpr Pair queued[] = {{Library::curator, "InterProcessMutex", "layout=curator"},
                           {Library::curator, "InterProcessMutex", "strategy=sequential-herd"},
                           {Library::kazoo, "Lock", "layout=kazoo"},
                           {Library::kazoo, "WriteLock", "layout=kazoo"},
                           {Library::kazoo, "CuratorLock", "layout=curator"},
                           {Library::kazoo, "CuratorLock", "strategy=sequential-herd"}};
// kazoo 2.8's readers wait for writers that came after them, too, which wait for the readers.
constexpr Pair readers = {Library::kazoo, "ReadLock", "layout=kazoo"};

// Hazard: children of other programs: one layout, or refused
TEST_F(InteroperationTest, TheirLocksAndOurs_ExcludeEachOther) {
  std::vector<Pair> pairs(std::begin(queued), std::end(queued));
  pairs.push_back(readers);
  for (const Pair& pair : pairs) {
    SCOPED_TRACE(pair);
    const std::string name = new_name();
    Contender ours(client_of(pair), name);
    const ForeignLock theirs = foreign(pair, name);
    ASSERT_EQ(theirs.ask("acquire"), "held");
    EXPECT_FALSE(ours.lock.try_acquire().has_value());
    EXPECT_EQ(ours.client.inspect(name).holder, holder(name).value().data);
    Pending waiting(ours.lock, {});
    await_residue(name, 2);
    EXPECT_FALSE(waiting.done());
    EXPECT_EQ(theirs.ask("release"), "free");
    Lease lease = waiting.lease();
    EXPECT_TRUE(lease.held());

    EXPECT_EQ(theirs.ask("try"), "busy");
    const ForeignAnswer answer = theirs.begin("acquire");
    await_residue(name, 2);
    EXPECT_FALSE(answer.given());
    EXPECT_TRUE(lease.release());
    EXPECT_EQ(answer.get(), "held");
    EXPECT_EQ(theirs.ask("release"), "free");
    EXPECT_TRUE(take(ours.lock).held());
  }
}

// Shows: first-come
TEST_F(InteroperationTest, MixedQueue_IsServedInOrder) {
  constexpr std::size_t each = 3;
  for (const Pair& pair : queued) {
    SCOPED_TRACE(pair);
    const std::string name = new_name();
    Contender own(client_of(pair), name);
    Lease first = take(own.lock);
    std::vector<ForeignLock> theirs;
    std::vector<ForeignAnswer> answers;
    std::vector<Pending> ours;
    for (std::size_t i = 0; i < each; ++i) {
      theirs.push_back(foreign(pair, name));
      answers.push_back(theirs.back().begin("acquire"));
      await_residue(name, 2 * i + 2);
      ours.emplace_back(own.lock, AcquireOptions{});
      await_residue(name, 2 * i + 3);
    }
    const LockInfo info = own.client.inspect(name);
    EXPECT_EQ(info.holder, own.client.holder());
    EXPECT_EQ(info.waiters, 2 * each);
    EXPECT_TRUE(first.release());
    for (std::size_t i = 0; i < each; ++i) {
      EXPECT_EQ(answers[i].get(), "held");
      EXPECT_FALSE(ours[i].done());
      EXPECT_EQ(own.client.inspect(name).token.value(), static_cast<std::uint64_t>(holder(name).value().created));
      EXPECT_EQ(theirs[i].ask("release"), "free");
      const Lease lease = ours[i].lease();
      EXPECT_TRUE(lease.held());
      EXPECT_TRUE(i + 1 == each || !answers[i + 1].given());
    }
    await_residue(name, 0);
  }
}

// Whoever has the lock makes a node that nobody else may have made.
TEST_F(InteroperationTest, ContendersOfBothSides_AreAloneInTheirCriticalSections) {
  constexpr int rounds = 25;
  for (const Pair& pair : queued) {
    SCOPED_TRACE(pair);
    const std::string name = new_name();
    const std::string node = "/alone-" + name;
    const Client client = client_of(pair);
    DistributedLock gate = client.make_lock(name);
    std::vector<ForeignAnswer> theirs;
    std::vector<std::future<int>> ours;
    Lease closed = take(gate);
    for (int i = 0; i < 2; ++i) {
      theirs.push_back(foreign(pair, name).begin("rounds " + std::to_string(rounds) + " " + node));
      ours.push_back(std::async(std::launch::async, [&] {
        DistributedLock lock = client.make_lock(name);
        ZooKeeperClient witness(server.address());
        int alone = 0;
        for (int round = 0; round < rounds; ++round) {
          const Lease lease = take(lock);
          try {
            (void)witness.create(node, {}, ZooKeeperClient::Kind::ephemeral);
            ++alone;
            (void)witness.remove(node);
          } catch (const ZooKeeperRefusal&) {  // somebody else is there
          }
        }
        return alone;
      }));
    }
    await_residue(name, 5);
    EXPECT_TRUE(closed.release());
    for (std::future<int>& each : ours) EXPECT_EQ(each.get(), rounds);
    for (const ForeignAnswer& each : theirs) EXPECT_EQ(each.get(), std::to_string(rounds) + " alone");
  }
}

// Curator's Revoker writes its request over the data of whoever holds the lock, ours included.
TEST_F(InteroperationTest, RevocationRequest_IsNotTakenForAHolder) {
  const Pair pair{Library::curator, "InterProcessMutex", "layout=curator"};
  Contender own(client_of(pair), "shared");
  const ForeignLock theirs = foreign(pair, "shared");
  const ForeignLock revoker = foreign(pair, "shared");
  const auto expect_nameless = [&] {
    EXPECT_EQ(holder("shared").value().data, "__REVOKE__");
    const LockInfo info = own.client.inspect("shared");
    EXPECT_TRUE(info.held);
    EXPECT_EQ(info.holder, "");
    const std::vector<LockInfo> all = own.client.list();
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all.front().holder, "");
  };
  ASSERT_EQ(theirs.ask("acquire"), "held");
  EXPECT_EQ(revoker.ask("revoke " + holder_path("shared").value()), "done");
  EXPECT_TRUE(theirs.asked_to_let_go());
  expect_nameless();
  EXPECT_EQ(theirs.ask("release"), "free");

  Lease lease = take(own.lock);
  EXPECT_EQ(revoker.ask("revoke " + holder_path("shared").value()), "done");
  expect_nameless();
  EXPECT_FALSE(own.lock.try_acquire().has_value());
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(lease.release());
}

class ReapedParentsTest : public InteroperationTest {
 protected:
  ReapedParentsTest() : InteroperationTest({.properties = {"znode.container.checkIntervalMs=100"}}) {}
  void TearDown() override {
    end_clients();  // of a server that goes with the test
    InteroperationTest::TearDown();
  }

  // All containers that are empty now are gone.
  void await_reaping() {
    for (int i = 0; i < 2; ++i) {  // the first may be removed in the middle of a look at all of them
      (void)zk.create("/empty", {}, ZooKeeperClient::Kind::container);
      (void)zk.create("/empty/child");
      (void)zk.remove("/empty/child");
      await("a container stays", [&] { return !zk.get("/empty"); });
    }
  }
};

// An object of kazoo's makes the parent once, unless it finds it.
// Shows: no-residue
// Hazard: parent nodes accumulate or disappear: containers, made again
TEST_F(ReapedParentsTest, OurParentReaped_TheirLockOutlivesIt) {
  std::vector<ForeignLock> all;
  for (const Pair& pair : queued) {
    SCOPED_TRACE(pair);
    const std::string name = new_name();
    Contender ours(client_of(pair), name);
    Lease lease = take(ours.lock);
    all.push_back(foreign(pair, name));
    const ForeignAnswer answer = all.back().begin("acquire");
    await_residue(name, 2);
    EXPECT_TRUE(lease.release());
    EXPECT_EQ(answer.get(), "held");
    EXPECT_EQ(all.back().ask("release"), "free");
  }
  await_reaping();
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(queued[i]);
    EXPECT_EQ(all[i].ask("acquire"), "held");
    EXPECT_EQ(all[i].ask("release"), "free");
  }
}

// --- Who do not ------------------------------------------------------------------------------------------------------

struct Foreigner : Pair {
  const char* layout;         // as the refusal calls it
  bool waits_for_us = false;  // though we do not wait for it
};

constexpr Foreigner refused[] = {
    {{Library::kazoo, "Lock", "layout=curator"}, "kazoo's (layout=kazoo)"},
    {{Library::kazoo, "ReadLock", "strategy=sequential-herd"}, "kazoo's (layout=kazoo)"},
    // It looks for nodes of ours, but goes on making others.
    {{Library::kazoo, "PatternLock", "layout=curator"}, "kazoo's (layout=kazoo)", true},
    {{Library::kazoo, "CuratorLock", "layout=kazoo"}, "Curator's and go-zk's (layout=curator)"},
    // Any children are leases to it.
    {{Library::kazoo, "Semaphore", "layout=curator"}, "kazoo's semaphore", true},
    {{Library::kazoo, "Semaphore", "layout=kazoo"}, "kazoo's semaphore", true},
    {{Library::kazoo, "Semaphore", "strategy=sequential-herd"}, "kazoo's semaphore", true},
    {{Library::curator, "InterProcessMutex", "layout=kazoo"}, "Curator's and go-zk's (layout=curator)"},
    {{Library::curator, "InterProcessSemaphoreMutex", "layout=curator"}, "Curator's semaphore"},
    {{Library::curator, "InterProcessSemaphoreMutex", "strategy=sequential-herd"}, "Curator's semaphore"},
    {{Library::curator, "InterProcessSemaphoreV2", "layout=curator"}, "Curator's semaphore"},
    {{Library::curator, "InterProcessSemaphoreV2", "layout=kazoo"}, "Curator's semaphore"},
    {{Library::curator, "readLock", "layout=curator"}, "Curator's read-write lock"},
    {{Library::curator, "writeLock", "layout=curator"}, "Curator's read-write lock"},
    {{Library::curator, "LeaderLatch", "layout=curator"}, "Curator's leader latch"},
    {{Library::curator, "WriteLock", "layout=curator"}, "ZooKeeper's lock recipe", true}};

// Shows: hole zookeeper-foreign-layout
TEST_F(InteroperationTest, AnotherLayout_IsRefusedUntilItIsGone) {
  for (const Foreigner& pair : refused) {
    SCOPED_TRACE(pair);
    const std::string name = new_name();
    Contender own(client_of(pair), name);
    zk.create_all(path(name));  // which the recipe does not
    const ForeignLock theirs = foreign(pair, name);
    ASSERT_EQ(theirs.ask("acquire"), "held");
    const auto before = zk.children(path(name));
    expect_refusal(own.client, name, pair.layout);
    EXPECT_THROW((void)own.client.inspect(name), Error);
    EXPECT_THROW((void)own.client.break_lock(name), Error);
    expect_refusal(steady({}, std::string("strategy=ephemeral&") + long_session), name, "not ephemeral");
    EXPECT_EQ(zk.children(path(name)), before) << "nothing of ours is left, and theirs stays";
    EXPECT_EQ(theirs.ask("release"), "free");
    EXPECT_TRUE(take(own.lock).release());
    EXPECT_FALSE(own.client.inspect(name).held);
  }
}

// No client of the queue can keep out those who take no notice of it.
// Shows: hole zookeeper-foreign-layout
// Hazard: children of other programs: one layout, or refused
TEST_F(InteroperationTest, AnotherLayout_SomeWaitForOurLockSomeDoNot) {
  for (const Foreigner& pair : refused) {
    SCOPED_TRACE(pair);
    const std::string name = new_name();
    Contender ours(client_of(pair), name);
    const Lease lease = take(ours.lock);
    const ForeignLock theirs = foreign(pair, name);
    if (pair.waits_for_us) {
      EXPECT_EQ(theirs.ask("try"), "busy");
      continue;
    }
    EXPECT_EQ(theirs.ask("acquire"), "held");
    EXPECT_TRUE(lease.held());
    EXPECT_EQ(theirs.ask("release"), "free");
  }
}

TEST_F(InteroperationTest, SingleNode_ExcludesQueuedLocks) {
  for (const Pair& pair : {Pair{Library::curator, "InterProcessMutex", "strategy=ephemeral"},
                           Pair{Library::kazoo, "Lock", "strategy=ephemeral"}}) {
    SCOPED_TRACE(pair);
    const std::string name = new_name();
    Contender ours(client_of(pair), name);
    const Lease lease = take(ours.lock);
    EXPECT_NE(foreign(pair, name).ask("acquire").find("NoChildrenForEphemerals"), std::string::npos);
    EXPECT_TRUE(lease.held());
  }
}

}  // namespace

}  // namespace dlock::test
