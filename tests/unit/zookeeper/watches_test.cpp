// Watches that are shared, and limited to what can be set again.
#include "backends/zookeeper/connection/watches.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "backend_fixture.hpp"

namespace dlock::zookeeper {

namespace {

class WatchesTest : public BackendTest, private Session::User {
 protected:
  static constexpr std::size_t room = 160;

  WatchesTest() {
    options.hosts = {{"h", 2181}};
    options.session_timeout = 10s;
    options.connect_timeout = 5s;
    options.response_timeout = 2s;
    session.want();
    engine.run();
    (void)ensemble.put("/n");
  }

  struct Looker {
    int changes = 0;
    std::unique_ptr<Watches::Interest> interest = nullptr;
  };
  void take_interest(Looker& looker, const std::string& path = "/n") {
    looker.interest = watches.watch(Watches::Kind::data, path, [&looker] { ++looker.changes; });
  }
  void ask(const Looker& looker) {
    requests.get("/n", looker.interest.get(), [](const Outcome&, const Handle::Node&) {});
  }
  void look(Looker& looker) {
    take_interest(looker);
    ask(looker);
    engine.run();
  }
  void remove() {
    ensemble.remove("/n");
    engine.run();
  }

  Options options;
  Session session{engine, options, ensemble.handles(), *this};
  Requests requests{session};
  Watches watches{engine, session, 0, room};
  Looker one;
  Looker other;

 private:
  void session_ready(bool /*fresh*/) override {}
  void session_alive(TimePoint) override {}
  void session_suspended(const Failure&) override {}
  void session_lost(const Failure&) override {}
};

// As long as it stays with the server, it counts.
TEST_F(WatchesTest, Watch_IsSharedAndCountsUntilItFires) {
  look(one);
  take_interest(other);
  EXPECT_EQ(one.interest->id(), other.interest->id());
  const std::size_t bytes = watches.bytes();
  EXPECT_GT(bytes, 0U);
  ensemble.disconnect();
  engine.run();
  ensemble.reconnect();
  engine.run();
  EXPECT_EQ(watches.bytes(), bytes) << "a watch outlives a disconnect";
  EXPECT_EQ(one.changes + other.changes, 0);
  one.interest.reset();
  EXPECT_EQ(watches.bytes(), bytes);
  remove();
  EXPECT_EQ(watches.bytes(), 0U);
  EXPECT_EQ(one.changes, 0);
  EXPECT_EQ(other.changes, 1);
}

TEST_F(WatchesTest, InterestLost_IsNotNotified) {
  look(one);
  ensemble.remove("/n");
  one.interest.reset();
  engine.run();
  EXPECT_EQ(one.changes, 0);
}

TEST_F(WatchesTest, WatchSetAfterItsInterestWasLost_Counts) {
  take_interest(one);
  ask(one);
  one.interest.reset();
  engine.run();
  EXPECT_GT(watches.bytes(), 0U);
  EXPECT_EQ(ensemble.watches(), 1U);
  remove();
  EXPECT_EQ(watches.bytes(), 0U);
  EXPECT_EQ(one.changes, 0);
}

TEST_F(WatchesTest, WatchNotSet_DoesNotCount) {
  ensemble.remove("/n");
  for (const Fate fate : {Fate::answer, Fate::refuse, Fate::lose_request}) {  // the node is not there
    take_interest(one);
    next(Kind::get, fate);
    ask(one);
    one.interest.reset();
    engine.run();
    EXPECT_EQ(watches.bytes(), 0U);
  }
  take_interest(one);
  one.interest.reset();
  EXPECT_EQ(watches.bytes(), 0U) << "nor does one that was not asked for";
}

TEST_F(WatchesTest, WatchOfAMissingNode_FiresAtItsCreation) {
  ensemble.remove("/n");
  one.interest = watches.watch(Watches::Kind::presence, "/n", [this] { ++one.changes; });
  requests.exists("/n", *one.interest, [](const Outcome&, const Stat&) {});
  engine.run();
  EXPECT_EQ(one.changes, 0);
  EXPECT_GT(watches.bytes(), 0U);
  (void)ensemble.put("/n");
  engine.run();
  EXPECT_EQ(one.changes, 1);
  EXPECT_EQ(watches.bytes(), 0U);
}

// Another's get found the node before it went.
TEST_F(WatchesTest, NodeFoundMissing_NotifiesAllItsWatches) {
  take_interest(one);
  look(other);
  ensemble.loses_events = true;
  ensemble.remove("/n");
  ask(one);
  engine.run();
  EXPECT_EQ(one.changes + other.changes, 2);
}

TEST_F(WatchesTest, SessionOver_IsAChangeForEachWatch) {
  look(one);
  ensemble.expire();
  engine.run();
  EXPECT_EQ(one.changes, 1);
  auto others = std::make_unique<Watches>(engine, session, 0);
  const auto outlives = others->watch(Watches::Kind::data, "/n", [] { ADD_FAILURE(); });
  others.reset();
}

// Hazard 20.
TEST_F(WatchesTest, Watches_AreLimitedToWhatCanBeSetAgain) {
  std::vector<Looker> lookers(10);
  for (std::size_t i = 0; i < lookers.size(); ++i) {
    take_interest(lookers[i], "/" + std::string(50, 'x') + std::to_string(i));
  }
  EXPECT_LE(watches.bytes(), room);
  EXPECT_NE(lookers.front().interest, nullptr);
  EXPECT_EQ(lookers.back().interest, nullptr);
  take_interest(one, "/" + std::string(50, 'x') + "0");
  EXPECT_NE(one.interest, nullptr) << "costs nothing more";
}

TEST_F(WatchesTest, WaitersAndHoldersWithoutAWatch_Poll) {
  options.chroot = "/" + std::string(Watches::default_max_bytes / 3, 'x');  // room for two
  backend = std::make_unique<SessionLocks>(host, options, 10s, ensemble.handles(), ServerAsker());
  std::vector<std::unique_ptr<Attempt>> waiters;
  std::vector<std::string> holders;
  for (int i = 0; i < 5; ++i) {
    const std::string name = "l" + std::to_string(i);
    holders.push_back(put_member("/dlock/" + name));
    waiters.push_back(contend(*backend, {.name = name}));
  }
  EXPECT_LE(ensemble.watches(), 2U);
  for (const std::string& holder : holders) ensemble.remove(holder);
  engine.advance(3s);
  for (const auto& waiter : waiters) EXPECT_TRUE(waiter->grant);
  EXPECT_LE(ensemble.watches(), 2U);
  EXPECT_TRUE(host.losses.empty());
  for (int i = 0; i < 5; ++i) ensemble.remove(own_nodes("/dlock/l" + std::to_string(i)).at(0));
  engine.advance(6s);
  EXPECT_EQ(host.losses.size(), 5U);
}

}  // namespace

}  // namespace dlock::zookeeper
