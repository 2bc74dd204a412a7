// Other programs' lockers and semaphores at a lock's node, by the names that they really have: nobody is let in beside
// them.
#include <gtest/gtest.h>

#include <string>

#include "backend_fixture.hpp"
#include "tests/unit/support/reports.hpp"

namespace dlock::zookeeper {

namespace {

constexpr std::int64_t others_session = 77;
constexpr const char* all_strategies[] = {"", "layout=kazoo", "strategy=sequential-herd", "strategy=ephemeral"};
constexpr const char* queues[] = {"", "layout=kazoo", "strategy=sequential-herd"};

class ForeignLockersTest : public BackendTest {
 protected:
  // Curator 5.4: both parents are containers.
  void put_waiter() { (void)put_in("locks", "-lock-"); }
  std::string put_lease() { return put_in("leases", "-lease-"); }
  std::string put_in(const std::string& child, const std::string& marker) {
    return ensemble
        .put(std::string(parent) + "/" + child + "/_c_0e1cf9d8-5f6c-4a49-8f0a-1c0f0c3f1b2d" + marker, "127.0.0.1",
             others_session, true)
        .path;
  }
  // kazoo 2.8.
  std::string put_kazoos_lease() {
    return ensemble.put(std::string(parent) + "/0e1cf9d85f6c4a498f0a1c0f0c3f1b2d", "id", others_session).path;
  }

  void expect_refused(const std::string& query, const std::string& named) {
    backend = make(query);
    const std::size_t before = ensemble.children(parent).size();
    for (const bool wait : {true, false}) {
      const auto attempt = contend(*backend, wait);
      EXPECT_FALSE(attempt->grant) << query;
      ASSERT_TRUE(failed(*attempt, errc::protocol, parent)) << query;
      // With strategy=ephemeral the node that is in the way says enough.
      if (query.find("ephemeral") != std::string::npos) continue;
      EXPECT_NE(attempt->failure->detail.find(named), std::string::npos) << attempt->failure->detail;
    }
    engine.run();
    EXPECT_EQ(ensemble.children(parent).size(), before) << "ours is gone";
  }
  void expect_granted(const std::string& query) {
    backend = make(query);
    for (const bool wait : {true, false}) {
      const auto attempt = contend(*backend, wait);
      ASSERT_TRUE(attempt->grant) << query << (attempt->failure ? attempt->failure->detail : "");
      EXPECT_EQ(release(*backend, *attempt)->status, ReleaseStatus::released);
    }
    EXPECT_TRUE(host.warnings.empty());
  }
  template <class T>
  void expect_refused(const std::optional<Result<T>>& answer) {
    ASSERT_TRUE(answer && !answer->ok());
    EXPECT_EQ(answer->failure().code, errc::protocol);
  }
};

TEST_F(ForeignLockersTest, NobodyIsLetInBesideAHolderOfCuratorsSemaphore) {
  put_lease();
  (void)ensemble.put(std::string(parent) + "/locks");  // its container stays for a while
  for (const std::string query : all_strategies) expect_refused(query, "leases");
}

TEST_F(ForeignLockersTest, NobodyIsLetInBesideOneWhoIsOnItsWayIntoCuratorsSemaphore) {
  put_waiter();
  for (const std::string query : all_strategies) expect_refused(query, "locks");
}

TEST_F(ForeignLockersTest, NobodyIsLetInBesideAHolderOfKazoosSemaphore) {
  (void)put_kazoos_lease();
  for (const std::string query : all_strategies) expect_refused(query, "kazoo");
}

// Each of our nodes would be a lease to kazoo, and use up one of the numbers.
TEST_F(ForeignLockersTest, WhoeverIsRefusedWritesOnlyOnce) {
  (void)put_kazoos_lease();
  const std::string foreign = std::string(parent) + "/" + ensemble.children(parent).front();
  for (const std::string query : queues) {
    backend = make(query);
    (void)contend(*backend, true);
    const std::size_t before = ensemble.requests.size();
    for (const bool wait : {false, true, false, true}) {
      EXPECT_TRUE(failed(*contend(*backend, wait), errc::protocol, parent)) << query;
    }
    EXPECT_EQ(requests_since(before, Kind::create), 0U) << query;
  }
  ensemble.remove(foreign);
  for (const bool wait : {true, false}) {
    const auto attempt = contend(*backend, wait);
    ASSERT_TRUE(attempt->grant);
    (void)release(*backend, *attempt);
  }
  const std::size_t before = ensemble.requests.size();
  EXPECT_TRUE(contend(*backend)->grant);
  EXPECT_EQ(ensemble.requests.at(before).kind, Kind::create) << "no look is needed any more";
}

TEST_F(ForeignLockersTest, WhoeverIsRefusedBesideASemaphoreWritesOnlyOnce) {
  put_lease();
  for (const std::string query : queues) {
    backend = make(query);
    (void)contend(*backend, true);
    const std::size_t before = ensemble.requests.size();
    for (const bool wait : {false, true}) {
      EXPECT_TRUE(failed(*contend(*backend, wait), errc::protocol, parent)) << query;
    }
    EXPECT_EQ(requests_since(before, Kind::create), 0U) << query;
  }
}

TEST_F(ForeignLockersTest, NobodyIsLetInBesideAnUnknownProgramsNumberedNode) {
  (void)ensemble.put(std::string(parent) + "/ex", {}, others_session, true);  // zk-ruby's
  for (const std::string query : all_strategies) expect_refused(query, "ex0000000000");
}

TEST_F(ForeignLockersTest, WhatCuratorsSemaphoreLeavesBehindIsInNobodysWay) {
  (void)ensemble.put(std::string(parent) + "/locks");
  for (const std::string query : queues) expect_granted(query);
  (void)ensemble.put(std::string(parent) + "/leases");
  for (const std::string query : queues) expect_granted(query);
  ensemble.remove(std::string(parent) + "/locks");
  for (const std::string query : queues) expect_granted(query);
}

// Our list shows only `locks`; when we look below it, the other has gone on to `leases`.
TEST_F(ForeignLockersTest, OneWhoMovesWhileWeLookIsNotMissed) {
  put_waiter();
  ensemble.fate = [this](const FakeRequest& request) {
    if (request.kind != Kind::get || !request.path.ends_with("/locks")) return Fate::answer;
    ensemble.fate = nullptr;
    (void)put_lease();
    for (const std::string& child : ensemble.children(request.path)) ensemble.remove(request.path + "/" + child);
    return Fate::answer;
  };
  const auto attempt = contend(*backend);
  EXPECT_FALSE(attempt->grant);
  ASSERT_TRUE(failed(*attempt, errc::protocol));
}

// A connection that breaks while we look: what was not seen is not taken for empty.
TEST_F(ForeignLockersTest, WhatCouldNotBeLookedAtIsLookedAtAgain) {
  put_lease();
  next(Kind::get, Fate::lose_answer);
  const auto attempt = contend(*backend);
  EXPECT_FALSE(attempt->grant);
  EXPECT_FALSE(attempt->failure);
  engine.advance(1s);
  EXPECT_FALSE(attempt->grant);
  ASSERT_TRUE(failed(*attempt, errc::protocol));
}

// The others are looked for when the list is; each waiter in the herd lists anew.
TEST_F(ForeignLockersTest, AWaiterOfTheHerdThatSeesASemaphoreComeIsRefused) {
  backend = make("strategy=sequential-herd");
  const std::string theirs = put_member();
  const auto attempt = contend(*backend);
  ASSERT_EQ(attempt->busy_reports, 1);
  put_lease();
  ensemble.remove(theirs);
  engine.run();
  EXPECT_FALSE(attempt->grant);
  ASSERT_TRUE(failed(*attempt, errc::protocol));
}

TEST_F(ForeignLockersTest, QuestionsAboutASemaphoreAreRefusedAndNothingOfItIsBroken) {
  const std::string theirs = put_lease();
  for (const std::string query : queues) {
    backend = make(query);
    std::optional<Result<LockInfo>> info;
    backend->inspect(LockKind::lock, "lock", [&](Result<LockInfo> result) { info = std::move(result); });
    std::optional<Result<bool>> broken;
    backend->break_lock(LockKind::lock, "lock", [&](Result<bool> result) { broken = std::move(result); });
    std::optional<Result<std::vector<LockInfo>>> infos;
    backend->list(LockKind::lock, [&](Result<std::vector<LockInfo>> result) { infos = std::move(result); });
    engine.run();
    expect_refused(info);
    expect_refused(broken);
    ASSERT_TRUE(infos && infos->ok());
    EXPECT_TRUE(infos->value().empty());
  }
  EXPECT_TRUE(ensemble.exists(theirs));
}

TEST_F(ForeignLockersTest, QuestionsAreAnsweredBesideWhatASemaphoreLeavesBehind) {
  (void)ensemble.put(std::string(parent) + "/leases");
  const auto ask = [&] {
    std::optional<Result<LockInfo>> info;
    backend->inspect(LockKind::lock, "lock", [&](Result<LockInfo> result) { info = std::move(result); });
    engine.run();
    return info.value().value();
  };
  EXPECT_FALSE(ask().held);
  (void)put_member();
  (void)put_member();
  EXPECT_TRUE(ask().held);
  EXPECT_EQ(ask().waiters, 1U);
}

}  // namespace

}  // namespace dlock::zookeeper
