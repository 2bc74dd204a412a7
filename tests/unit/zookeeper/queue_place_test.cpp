// One place in a queue by itself: what becomes of it, and of what is under way, when it is given up.
#include "backends/zookeeper/strategies/queue_place.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backend_fixture.hpp"

namespace dlock::zookeeper {

namespace {

class QueuePlaceTest : public BackendTest, private Session::User {
 protected:
  using Answer = QueuePlace::Answer;

  QueuePlaceTest() {
    options.hosts = {{"h", 2181}};
    options.session_timeout = 10s;
    options.connect_timeout = 5s;
    options.response_timeout = 2s;
    session.want();
    engine.run();
  }

  void take() {
    place.take(host.new_owner_id(), "host:1:test", [this](const Answer& answer) { answers.push_back(answer.kind); });
  }
  void find() {
    place.find([this](const Answer& answer) { answers.push_back(answer.kind); });
  }
  bool nothing_is_left() const {
    return !place.there() && !place.unknown() && own_nodes().empty() && removals.size() == 0;
  }

  Options options;
  Session session{engine, options, ensemble.handles(), *this};
  Requests requests{session};
  Parents parents{requests, options};
  Removals removals{engine, requests, 2s, [](const Failure&) {}};
  QueuePlace place{requests, parents, removals, Layout::curator, {}, parent};
  std::vector<Answer::Kind> answers;

 private:
  void session_ready(bool fresh) override { removals.session_ready(fresh); }
  void session_alive(TimePoint) override {}
  void session_suspended(const Failure&) override {}
  void session_lost(const Failure&) override { removals.session_lost(); }
};

TEST_F(QueuePlaceTest, APlaceThatIsGivenUpIsNone) {
  (void)ensemble.put(parent);
  take();
  engine.run();
  ASSERT_EQ(answers, std::vector{Answer::Kind::there});
  EXPECT_TRUE(place.there());
  const std::size_t before = ensemble.requests.size();
  place.give_up();
  place.give_up();
  engine.run();
  EXPECT_TRUE(nothing_is_left());
  EXPECT_EQ(requests_since(before, Kind::remove), 1U);
}

TEST_F(QueuePlaceTest, ASearchThatIsUnderWayWhenThePlaceIsGivenUpFindsNothing) {
  // Given up before each of its answers: that of the list, and that of the node.
  for (const Kind kind : {Kind::children, Kind::get}) {
    answers.clear();
    (void)ensemble.put(parent);
    next(Kind::create, Fate::lose_answer);
    take();
    engine.run();
    ASSERT_EQ(answers, std::vector{Answer::Kind::trouble});
    EXPECT_TRUE(place.unknown());
    ensemble.fate = [this, kind](const FakeRequest& request) {
      if (request.kind == kind) {
        ensemble.fate = nullptr;
        engine.post([this] { place.give_up(); });
      }
      return Fate::answer;
    };
    find();
    engine.run();
    EXPECT_EQ(answers.size(), 1U);
    EXPECT_TRUE(nothing_is_left());
  }
}

TEST_F(QueuePlaceTest, ParentsThatAreMadeForAPlaceThatIsGivenUpAreTakenBack) {
  ensemble.fate = [this](const FakeRequest& request) {
    if (request.kind == Kind::create && request.path == parent) {
      ensemble.fate = nullptr;
      engine.post([this] { place.give_up(); });
    }
    return Fate::answer;
  };
  take();
  engine.run();
  EXPECT_TRUE(answers.empty());
  EXPECT_TRUE(nothing_is_left());
  EXPECT_FALSE(ensemble.exists(parent));
}

}  // namespace

}  // namespace dlock::zookeeper
