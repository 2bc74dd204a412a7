// Observers of elections, in every strategy.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "backend_fixture.hpp"

namespace dlock::zookeeper {

namespace {

class ElectionTest : public BackendTest, public testing::WithParamInterface<const char*> {
 protected:
  ElectionTest() { backend = make(std::string("strategy=") + GetParam()); }

  static constexpr auto place = "/dlock.elect/lock";

  std::unique_ptr<Attempt> campaign(Backend& of) { return contend(of, {.kind = LockKind::election, .value = "x"}); }
  void observe() {
    watch = backend->watch(LockKind::election, "lock", [this] {
      ++notified;
      notified_at = ensemble.requests.size();
    });
    engine.run();
    notified = 0;
  }
  // Since the last time.
  bool was_notified() { return std::exchange(notified, 0) > 0; }

  std::unique_ptr<Watch> watch;
  int notified = 0;
  std::size_t notified_at = 0;
};

INSTANTIATE_TEST_SUITE_P(Strategies, ElectionTest, testing::Values("sequential", "sequential-herd", "ephemeral"),
                         [](const auto& strategy) {
                           std::string name = strategy.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST_P(ElectionTest, AnObserver_LearnsOfEveryChange_AndAsksNothingMeanwhile) {
  observe();
  EXPECT_EQ(ensemble.dialled, 1);
  EXPECT_FALSE(backend->unused());
  for (int i = 0; i < 2; ++i) {
    const auto leader = campaign(*backend);
    ASSERT_TRUE(leader->grant);
    EXPECT_TRUE(was_notified());
    (void)release(*backend, *leader);
    EXPECT_TRUE(was_notified());
  }
  ensemble.remove(place);  // its container is reaped
  engine.run();
  notified = 0;
  const std::size_t before = ensemble.requests.size();
  engine.advance(2min);
  for (const Kind kind : {Kind::get, Kind::exists, Kind::children, Kind::create}) {
    EXPECT_EQ(requests_since(before, kind), 0U) << "nothing is asked while nothing happens";
  }
  EXPECT_EQ(notified, 0);
  auto leader = campaign(*backend);
  EXPECT_TRUE(leader->grant);
  EXPECT_TRUE(was_notified());
  watch.reset();
  (void)release(*backend, *leader);
  EXPECT_FALSE(was_notified()) << "it is no observer any more";
}

// Its questions are sent behind the next watch.
TEST_P(ElectionTest, NothingHappensBetweenAnAnswerAndTheNextWatch) {
  const auto leader = campaign(*backend);
  observe();
  const std::size_t before = ensemble.requests.size();
  (void)release(*backend, *leader);
  ASSERT_GT(notified_at, before);
  bool set = false;
  for (std::size_t i = before; i < notified_at; ++i) set = set || ensemble.requests[i].watch != 0;
  EXPECT_TRUE(set);
}

TEST_P(ElectionTest, AnObserverSurvivesBrokenConnectionsAndLostSessions) {
  observe();
  const auto others = make(std::string("strategy=") + GetParam());
  ensemble.disconnect();
  engine.run();
  notified = 0;
  ensemble.reconnect();
  engine.run();
  EXPECT_TRUE(was_notified()) << "whatever happened meanwhile";
  (void)release(*others, *campaign(*others));
  EXPECT_TRUE(was_notified());
  ensemble.expire();
  engine.advance(5s);
  EXPECT_TRUE(was_notified());
  EXPECT_TRUE(campaign(*others)->grant);
  EXPECT_TRUE(was_notified());
}

}  // namespace

}  // namespace dlock::zookeeper
