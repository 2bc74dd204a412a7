// Watches that are shared, and limited to what can be set again.
#include "backends/zookeeper/connection/watches.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "backend_fixture.hpp"

namespace dlock::zookeeper {

namespace {

// The parts of a backend, with room for two watches of the queue's nodes.
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
  }

  std::unique_ptr<Watches::Interest> interest(const std::string& path, int& changes) {
    return watches.watch(Watches::Kind::data, path, [&changes] { ++changes; });
  }
  void ask(const std::string& path, Watches::Interest& of) {
    requests.get(path, &of, [](const Outcome&, const Handle::Node&) {});
  }
  void get(const std::string& path, Watches::Interest& of) {
    ask(path, of);
    engine.run();
  }
  std::unique_ptr<Attempt> queue(const std::string& name) {
    auto attempt = std::make_unique<Attempt>();
    attempt->request = {
        .name = name, .owner = host.new_owner_id(), .holder = "host:1:test", .lease = 10s, .wait = true};
    attempt->contention = sequential.contend(attempt->request, *attempt);
    engine.run();
    return attempt;
  }

  Options options;
  Session session{engine, options, ensemble.handles(), *this};
  Requests requests{session};
  Watches watches{engine, session, 0, room};
  Parents parents{requests, options};
  Removals removals{engine, requests, 2s, [](const Failure&) {}};
  Holds holds{host, requests, watches, removals};
  Contentions sequential{host, options, requests, watches, parents, removals, holds};

 private:
  void session_ready(bool /*fresh*/) override { sequential.session_ready(); }
  void session_alive(TimePoint valid_until) override { holds.session_alive(valid_until); }
  void session_suspended(const Failure&) override {}
  void session_lost(const Failure& why) override { holds.session_lost(why); }
};

TEST_F(WatchesTest, AllWhoAreInterestedInANodeShareAWatch) {
  (void)ensemble.put("/n");
  int one_changes = 0;
  int other_changes = 0;
  const auto one = interest("/n", one_changes);
  const auto other = interest("/n", other_changes);
  EXPECT_EQ(one->id(), other->id());
  get("/n", *one);
  ensemble.remove("/n");
  engine.run();
  EXPECT_EQ(one_changes, 1);
  EXPECT_EQ(other_changes, 1);
  EXPECT_EQ(watches.bytes(), 0U);
}

TEST_F(WatchesTest, WhoeverLostInterestIsNotTold) {
  (void)ensemble.put("/n");
  int changes = 0;
  auto one = interest("/n", changes);
  get("/n", *one);
  ensemble.remove("/n");
  one.reset();
  engine.run();
  EXPECT_EQ(changes, 0);
}

// It stays with the server, so it counts.
TEST_F(WatchesTest, AWatchThatWasSetCountsUntilItFires) {
  (void)ensemble.put("/n");
  int changes = 0;
  auto one = interest("/n", changes);
  const std::size_t bytes = watches.bytes();
  EXPECT_GT(bytes, 0U);
  get("/n", *one);
  one.reset();
  EXPECT_EQ(watches.bytes(), bytes);
  ensemble.remove("/n");
  engine.run();
  EXPECT_EQ(watches.bytes(), 0U);
  one = interest("/n", changes);
  one.reset();
  EXPECT_EQ(watches.bytes(), 0U) << "was never set";
}

// The server does not know who has lost interest since the question was sent.
TEST_F(WatchesTest, AWatchThatNobodyIsInterestedInWhenItIsSetCountsToo) {
  (void)ensemble.put("/n");
  int changes = 0;
  auto one = interest("/n", changes);
  ask("/n", *one);
  one.reset();
  engine.run();
  EXPECT_GT(watches.bytes(), 0U);
  EXPECT_EQ(ensemble.watches(), 1U);
  ensemble.remove("/n");
  engine.run();
  EXPECT_EQ(watches.bytes(), 0U);
  EXPECT_EQ(changes, 0);
}

TEST_F(WatchesTest, AWatchThatWasNotSetDoesNotCount) {
  int changes = 0;
  for (const Fate fate : {Fate::answer, Fate::refuse, Fate::lose_request}) {  // the node is not there
    auto one = interest("/n", changes);
    next(Kind::get, fate);
    ask("/n", *one);
    one.reset();
    engine.run();
    EXPECT_EQ(watches.bytes(), 0U);
  }
}

TEST_F(WatchesTest, WhoWatchesForTheComingOfANodeIsToldWhenItComes) {
  int changes = 0;
  auto one = watches.watch(Watches::Kind::presence, "/n", [&changes] { ++changes; });
  requests.exists("/n", *one, [](const Outcome&, const Stat&) {});
  engine.run();
  EXPECT_EQ(changes, 0);
  EXPECT_GT(watches.bytes(), 0U);
  (void)ensemble.put("/n");
  engine.run();
  EXPECT_EQ(changes, 1);
  EXPECT_EQ(watches.bytes(), 0U);
}

// Another's get found the node before it went.
TEST_F(WatchesTest, ANodeThatIsGoneIsNewsForAllWhoWatchIt) {
  int one_changes = 0;
  int other_changes = 0;
  const auto one = interest("/n", one_changes);
  const auto other = interest("/n", other_changes);
  (void)ensemble.put("/n");
  ask("/n", *other);
  ensemble.loses_events = true;
  engine.run();
  ensemble.remove("/n");
  get("/n", *one);
  EXPECT_EQ(one_changes + other_changes, 2);
}

TEST_F(WatchesTest, AnInterestMayOutliveTheWatches) {
  auto others = std::make_unique<Watches>(engine, session, 0);
  const auto one = others->watch(Watches::Kind::data, "/n", [] {});
  others.reset();
}

TEST_F(WatchesTest, TheEndOfTheSessionIsAChange) {
  (void)ensemble.put("/n");
  int changes = 0;
  const auto one = interest("/n", changes);
  get("/n", *one);
  ensemble.expire();
  engine.run();
  EXPECT_EQ(changes, 1);
}

// Hazard 20.
TEST_F(WatchesTest, NoMoreIsWatchedThanCanBeSetAgain) {
  int changes = 0;
  std::vector<std::unique_ptr<Watches::Interest>> interests;
  for (int i = 0; i < 10; ++i) interests.push_back(interest("/" + std::string(50, 'x') + std::to_string(i), changes));
  EXPECT_LE(watches.bytes(), room);
  EXPECT_NE(interests.front(), nullptr);
  EXPECT_EQ(interests.back(), nullptr);
  const auto shared = interest("/" + std::string(50, 'x') + "0", changes);
  EXPECT_NE(shared, nullptr) << "costs nothing more";
}

TEST_F(WatchesTest, AWaiterWithoutAWatchAsks) {
  std::vector<std::string> holders;
  std::vector<std::unique_ptr<Attempt>> waiters;
  for (int i = 0; i < 5; ++i) {
    const std::string name = "l" + std::to_string(i);
    holders.push_back(put_member("/dlock/" + name));
    waiters.push_back(queue(name));
  }
  EXPECT_LE(ensemble.watches(), 2U);
  for (const std::string& holder : holders) ensemble.remove(holder);
  engine.advance(3s);
  for (const auto& waiter : waiters) EXPECT_TRUE(waiter->grant);
}

TEST_F(WatchesTest, AHolderWithoutAWatchAsks) {
  std::vector<std::unique_ptr<Attempt>> held;
  for (int i = 0; i < 5; ++i) held.push_back(queue("l" + std::to_string(i)));
  engine.advance(1s);
  EXPECT_LE(ensemble.watches(), 2U);
  EXPECT_TRUE(host.losses.empty());
  for (int i = 0; i < 5; ++i) ensemble.remove(own_nodes("/dlock/l" + std::to_string(i)).at(0));
  engine.advance(6s);
  EXPECT_EQ(host.losses.size(), 5U);
}

}  // namespace

}  // namespace dlock::zookeeper
