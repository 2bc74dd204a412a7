// Questions about locks, and breaking them.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend_fixture.hpp"

namespace dlock::zookeeper {

namespace {

class InspectionTest : public BackendTest {
 protected:
  template <class T>
  using Answer = std::optional<Result<T>>;

  template <class T>
  Answer<T> answer_to(const std::function<void(Backend::Handler<T>)>& question) {
    Answer<T> answer;
    question([&](Result<T> result) { answer = std::move(result); });
    engine.run();
    return answer;
  }
  Answer<LockInfo> inspect(const std::string& name = "lock", LockKind kind = LockKind::lock) {
    return answer_to<LockInfo>([&](auto done) { backend->inspect(kind, name, std::move(done)); });
  }
  Answer<std::vector<LockInfo>> list(LockKind kind = LockKind::lock) {
    return answer_to<std::vector<LockInfo>>([&](auto done) { backend->list(kind, std::move(done)); });
  }
  Answer<bool> break_lock(const std::string& name = "lock", LockKind kind = LockKind::lock) {
    return answer_to<bool>([&](auto done) { backend->break_lock(kind, name, std::move(done)); });
  }
  using Names = std::vector<std::string>;
  Answer<Names> forget(const std::string& name = "lock", LockKind kind = LockKind::lock) {
    return answer_to<Names>(
        [&](auto done) { backend->forget({.name = name, .idle = 1min, .kind = kind}, std::move(done)); });
  }
};

TEST_F(InspectionTest, TheFirstInTheQueueIsTheHolder) {
  const std::string holder = put_member(parent, "web-3:4711:billing");
  (void)put_member();
  (void)put_member();
  auto info = inspect();
  ASSERT_TRUE(info && info->ok());
  EXPECT_TRUE(info->value().held);
  EXPECT_EQ(info->value().name, "lock");
  EXPECT_EQ(info->value().holder, "web-3:4711:billing");
  EXPECT_EQ(info->value().token.value(), static_cast<std::uint64_t>(ensemble.stat(holder).created));
  EXPECT_EQ(info->value().waiters, 2U);
  EXPECT_FALSE(info->value().remaining);
}

// Hazard 24.
TEST_F(InspectionTest, AnAnswerIsNoOlderThanTheQuestion) {
  (void)put_member();
  (void)inspect();
  const auto first = std::find_if(ensemble.requests.begin(), ensemble.requests.end(),
                                  [](const FakeRequest& request) { return request.path == parent; });
  ASSERT_NE(first, ensemble.requests.end());
  ASSERT_NE(first, ensemble.requests.begin());
  EXPECT_TRUE(is_heartbeat(*(first - 1))) << "a leader that was deposed answers a sync";
}

TEST_F(InspectionTest, AListCostsOneWriteOfNothing) {
  for (int i = 0; i < 20; ++i) (void)put_member("/dlock/n" + std::to_string(i));
  (void)inspect();
  const std::size_t before = ensemble.heartbeats();
  const auto all = list();
  ASSERT_TRUE(all && all->ok());
  EXPECT_EQ(all->value().size(), 20U);
  EXPECT_EQ(ensemble.heartbeats(), before + 1);
}

TEST_F(InspectionTest, AFreeLockIsFree) {
  auto info = inspect();
  ASSERT_TRUE(info && info->ok());
  EXPECT_FALSE(info->value().held);
  EXPECT_EQ(info->value().waiters, 0U);
  (void)ensemble.put(parent);
  info = inspect();
  ASSERT_TRUE(info && info->ok());
  EXPECT_FALSE(info->value().held);
}

TEST_F(InspectionTest, AnEphemeralLockIsSeenByEveryStrategy) {
  (void)ensemble.put(parent, "web-3:4711:billing", 77);
  for (const std::string query : {"", "strategy=ephemeral"}) {
    backend = make(query);
    auto info = inspect();
    ASSERT_TRUE(info && info->ok());
    EXPECT_TRUE(info->value().held);
    EXPECT_EQ(info->value().holder, "web-3:4711:billing");
    EXPECT_EQ(info->value().waiters.has_value(), query.empty());
  }
}

TEST_F(InspectionTest, ForeignDataIsNotShownUnlessItIsText) {
  (void)put_member(parent, std::string("\x00\xff\x12", 3));
  auto info = inspect();
  ASSERT_TRUE(info && info->ok());
  EXPECT_TRUE(info->value().held);
  EXPECT_EQ(info->value().holder, "");
}

// Curator's Revoker asks a holder to let go by this data.
TEST_F(InspectionTest, ARequestToLetGoIsNoHoldersName) {
  (void)put_member(parent, "__REVOKE__");
  auto info = inspect();
  ASSERT_TRUE(info && info->ok());
  EXPECT_TRUE(info->value().held);
  EXPECT_EQ(info->value().holder, "");
  auto infos = list();
  ASSERT_TRUE(infos && infos->ok());
  ASSERT_EQ(infos->value().size(), 1U);
  EXPECT_EQ(infos->value()[0].holder, "");
}

TEST_F(InspectionTest, AHolderThatGoesMeanwhileIsLookedForAgain) {
  const std::string first = put_member(parent, "first");
  (void)put_member(parent, "second");
  ensemble.fate = [&](const FakeRequest& request) {
    if (request.kind == Kind::get && request.path == first) ensemble.remove(first);
    return Fate::answer;
  };
  auto info = inspect();
  ASSERT_TRUE(info && info->ok());
  EXPECT_EQ(info->value().holder, "second");
}

TEST_F(InspectionTest, AQueueThatMakesNoSenseIsReported) {
  (void)ensemble.put(parent + std::string("/x__lock__"), {}, 77, true);
  auto info = inspect();
  ASSERT_TRUE(info && !info->ok());
  EXPECT_EQ(info->failure().code, errc::protocol);
}

TEST_F(InspectionTest, QuestionsEndAtTheResponseTimeout) {
  ensemble.dialling = FakeEnsemble::Dialling::silence;
  Answer<LockInfo> info;
  backend->inspect(LockKind::lock, "lock", [&](Result<LockInfo> result) { info = std::move(result); });
  Answer<std::vector<LockInfo>> infos;
  backend->list(LockKind::lock, [&](Result<std::vector<LockInfo>> result) { infos = std::move(result); });
  Answer<bool> broken;
  backend->break_lock(LockKind::lock, "lock", [&](Result<bool> result) { broken = std::move(result); });
  engine.advance(1999ms);
  EXPECT_FALSE(info || infos || broken);
  engine.advance(1ms);
  ASSERT_TRUE(info && infos && broken);
  EXPECT_EQ(info->failure().code, errc::unavailable);
  EXPECT_EQ(infos->failure().code, errc::unavailable);
  EXPECT_EQ(broken->failure().code, errc::unavailable);
  ensemble.dialling = FakeEnsemble::Dialling::accept;
  ensemble.reconnect();
  engine.advance(1s);
  EXPECT_EQ(ensemble.count(Kind::remove), 0U) << "nobody waits for it any more";
}

TEST_F(InspectionTest, MissingRightsAreSaid) {
  (void)put_member();
  (void)inspect();
  next(Kind::children, Fate::forbid);
  auto info = inspect();
  ASSERT_TRUE(info && !info->ok());
  EXPECT_EQ(info->failure().code, errc::access_denied);
}

TEST_F(InspectionTest, AListHasWhateverIsALock) {
  (void)put_member("/dlock/b");
  (void)put_member("/dlock/a%2Fx");
  (void)ensemble.put("/dlock/free");
  (void)ensemble.put("/dlock/single", "me", 77);
  (void)ensemble.put("/dlock/data", "somebody's");
  (void)ensemble.put("/dlock/not%a%name");
  (void)ensemble.put("/dlock/foreign/x__lock__", {}, 77, true);
  auto infos = list();
  ASSERT_TRUE(infos && infos->ok());
  std::string names;
  for (const LockInfo& info : infos->value()) names += info.name + (info.held ? "+ " : "- ");
  EXPECT_EQ(names, "a/x+ b+ free- single+ ");
}

TEST_F(InspectionTest, AListOfNothingIsEmpty) {
  auto infos = list();
  ASSERT_TRUE(infos && infos->ok());
  EXPECT_TRUE(infos->value().empty());
}

TEST_F(InspectionTest, WithoutAPrefixZookeepersOwnNodeIsNotListed) {
  backend = make("prefix=");
  (void)ensemble.put("/zookeeper/quota");
  (void)put_member("/mine");
  auto infos = list();
  ASSERT_TRUE(infos && infos->ok());
  ASSERT_EQ(infos->value().size(), 1U);
  EXPECT_EQ(infos->value()[0].name, "mine");
}

TEST_F(InspectionTest, AListOfManyIsWhole) {
  for (int i = 0; i < 300; ++i) (void)put_member("/dlock/l" + std::to_string(i));
  auto infos = list();
  ASSERT_TRUE(infos && infos->ok());
  EXPECT_EQ(infos->value().size(), 300U);
}

TEST_F(InspectionTest, BreakingRemovesTheHoldersNodeOnly) {
  const std::string holder = put_member();
  const std::string waiter = put_member();
  auto broken = break_lock();
  ASSERT_TRUE(broken && broken->ok());
  EXPECT_TRUE(broken->value());
  EXPECT_FALSE(ensemble.exists(holder));
  EXPECT_TRUE(ensemble.exists(waiter));
}

TEST_F(InspectionTest, BreakingAFreeLockSaysSo) {
  auto broken = break_lock();
  ASSERT_TRUE(broken && broken->ok());
  EXPECT_FALSE(broken->value());
}

TEST_F(InspectionTest, BreakingAnEphemeralLockRemovesItsNode) {
  backend = make("strategy=ephemeral");
  (void)ensemble.put(parent, "me", 77);
  auto broken = break_lock();
  ASSERT_TRUE(broken && broken->ok());
  EXPECT_TRUE(broken->value());
  EXPECT_FALSE(ensemble.exists(parent));
}

// --- Other kinds -----------------------------------------------------------------------------------------------------

constexpr auto read_write_place = "/dlock.rw/lock";
constexpr auto semaphore_place = "/dlock.sem/lock";

TEST_F(InspectionTest, AllReadersBeforeTheFirstWriterAreHolders) {
  const std::string first = put_node(read_write_place, "-__READ__", "web-1:1:x");
  const std::string second = put_node(read_write_place, "-__READ__", "web-2:2:x");
  (void)put_node(read_write_place, "-__WRIT__");
  (void)put_node(read_write_place, "-__READ__");
  const LockInfo info = inspect("lock", LockKind::read_write)->value();
  EXPECT_EQ(info.kind, LockKind::read_write);
  EXPECT_TRUE(info.held);
  EXPECT_EQ(info.holder, "web-1:1:x");
  ASSERT_EQ(info.holders.size(), 2U);
  EXPECT_EQ(info.holders[1].holder, "web-2:2:x");
  EXPECT_EQ(info.holders[1].mode, Mode::shared);
  EXPECT_EQ(info.holders[1].token.value(), static_cast<std::uint64_t>(ensemble.stat(second).created));
  EXPECT_EQ(info.token, info.holders[1].token) << "the last one";
  EXPECT_EQ(info.waiters, 2U);
  EXPECT_FALSE(inspect()->value().held);
  ensemble.remove(first);
  ensemble.remove(second);
  const LockInfo written = inspect("lock", LockKind::read_write)->value();
  ASSERT_EQ(written.holders.size(), 1U);
  EXPECT_EQ(written.holders[0].mode, Mode::exclusive);
  EXPECT_EQ(written.waiters, 1U);
}

TEST_F(InspectionTest, AsManyAsThereArePermitsAreHolders) {
  (void)put_node(semaphore_place, "-permit-of-2-", "web-1:1:x\nheld");
  for (int i = 0; i < 3; ++i) (void)put_node(semaphore_place, "-permit-of-2-", "web-2:2:x");
  const LockInfo info = inspect("lock", LockKind::semaphore)->value();
  EXPECT_EQ(info.permits, 2U);
  ASSERT_EQ(info.holders.size(), 2U);
  EXPECT_EQ(info.holders[0].holder, "web-1:1:x") << "without what its node says to others";
  EXPECT_EQ(info.waiters, 2U);
  ensemble.remove(semaphore_place);
  EXPECT_EQ(inspect("lock", LockKind::semaphore)->value().permits, 0U);
}

TEST_F(InspectionTest, AHolderThatGoesWhileItIsLookedAtIsNotCounted) {
  const std::string first = put_node(read_write_place, "-__READ__");
  (void)put_node(read_write_place, "-__READ__");
  ensemble.fate = [&](const FakeRequest& request) {
    if (request.path == first) ensemble.remove(first);
    return Fate::answer;
  };
  const LockInfo info = inspect("lock", LockKind::read_write)->value();
  EXPECT_EQ(info.holders.size(), 1U);
  EXPECT_EQ(info.waiters, 0U);
}

TEST_F(InspectionTest, AListHasOneKindOnly) {
  (void)put_member("/dlock/plain");
  (void)put_node("/dlock.rw/shared", "-__READ__");
  (void)put_node("/dlock.sem/counted", "-permit-of-2-");
  (void)put_member("/dlock.elect/led", "web-1:1:x\n10.0.0.7");
  const std::vector<std::pair<LockKind, std::string>> rows = {{LockKind::lock, "plain"},
                                                              {LockKind::read_write, "shared"},
                                                              {LockKind::semaphore, "counted"},
                                                              {LockKind::election, "led"}};
  for (const auto& [kind, name] : rows) {
    const auto all = list(kind)->value();
    ASSERT_EQ(all.size(), 1U) << name;
    EXPECT_EQ(all[0].name, name);
    EXPECT_EQ(all[0].kind, kind);
    EXPECT_EQ(all[0].value, kind == LockKind::election ? "10.0.0.7" : "");
  }
}

TEST_F(InspectionTest, BreakingEndsAllWhoHoldItAndNobodyElse) {
  const std::string one = put_node(read_write_place, "-__READ__");
  const std::string two = put_node(read_write_place, "-__READ__");
  const std::string writer = put_node(read_write_place, "-__WRIT__");
  const std::string plain = put_member();
  EXPECT_TRUE(break_lock("lock", LockKind::read_write)->value());
  EXPECT_FALSE(ensemble.exists(one) || ensemble.exists(two));
  EXPECT_TRUE(ensemble.exists(writer) && ensemble.exists(plain));
  EXPECT_FALSE(break_lock("lock", LockKind::semaphore)->value());
}

TEST_F(InspectionTest, ABreakThatWasNotCarriedOutWhollySaysSo) {
  (void)put_node(read_write_place, "-__READ__");
  (void)put_node(read_write_place, "-__READ__");
  next(Kind::remove, Fate::forbid);
  const auto broken = break_lock("lock", LockKind::read_write);
  ASSERT_TRUE(broken && !broken->ok());
  EXPECT_EQ(broken->failure().code, errc::access_denied);
}

TEST_F(InspectionTest, ForgettingIsOfOneKind) {
  (void)ensemble.put(parent);
  (void)ensemble.put(read_write_place);
  EXPECT_EQ(forget("lock", LockKind::read_write)->value(), Names{"lock"});
  EXPECT_FALSE(ensemble.exists(read_write_place));
  EXPECT_TRUE(ensemble.exists(parent));
  (void)put_node(semaphore_place, "-permit-of-2-");
  EXPECT_TRUE(forget("lock", LockKind::semaphore)->value().empty());
}

// --- Forgetting ------------------------------------------------------------------------------------------------------

TEST_F(InspectionTest, ForgettingRemovesANodeThatNobodyIsBelow) {
  const std::string node = put_member();
  EXPECT_TRUE(forget()->value().empty()) << "held";
  EXPECT_TRUE(ensemble.exists(node));
  ensemble.remove(node);
  EXPECT_EQ(forget()->value(), Names{"lock"});
  EXPECT_FALSE(ensemble.exists(parent));
  EXPECT_TRUE(forget()->value().empty());
}

// Between the look and the removal anybody may come, in a queue or not.
TEST_F(InspectionTest, ForgettingNeverRemovesWhoeverCameMeanwhile) {
  for (const bool ephemeral : {false, true}) {
    ensemble.put(parent);
    std::string node;
    ensemble.fate = [&](const FakeRequest& request) {
      if (request.kind == FakeRequest::Kind::remove && request.path == parent && node.empty()) {
        if (ephemeral) ensemble.remove(parent);
        node = ephemeral ? ensemble.put(parent, "host:1:x", 77).path : put_member();
      }
      return Fate::answer;
    };
    EXPECT_TRUE(forget()->value().empty());
    ASSERT_FALSE(node.empty());
    EXPECT_TRUE(ensemble.exists(node));
    ensemble.remove(parent);
  }
}

TEST_F(InspectionTest, ForgettingLeavesAloneWhatIsNoLock) {
  ensemble.put(parent, "somebody's data");
  EXPECT_EQ(forget()->failure().code, errc::protocol);
  ensemble.set_data(parent, "");
  ensemble.put(std::string(parent) + "/something");
  EXPECT_EQ(forget()->failure().code, errc::protocol);
  EXPECT_TRUE(ensemble.exists(std::string(parent) + "/something"));
}

TEST_F(InspectionTest, HowLongANameWasNotUsedIsNotKnown) {
  EXPECT_EQ(forget("")->failure().code, errc::unsupported);
}

}  // namespace

}  // namespace dlock::zookeeper
