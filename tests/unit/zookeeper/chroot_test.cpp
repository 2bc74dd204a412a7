// Making the node that is everything's root.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "zookeeper_backend_fixture.hpp"

namespace dlock::zookeeper {

namespace {

class ChrootTest : public ZookeeperBackendTest {
 protected:
  using Names = std::vector<std::string>;

  void ask(std::optional<Result<Names>>& answer) {
    group->initialize([&](Result<Names> made) { answer = std::move(made); });
  }
  // Returns what was created.
  Names initialize() {
    std::optional<Result<Names>> answer;
    ask(answer);
    engine.run();
    return answer.value().value();
  }

  std::unique_ptr<ZookeeperBackend> group = make_backend<ZookeeperBackend>({}, "/a/b");
};

TEST_F(ChrootTest, IsMadeWithWhatIsAboveIt_WhereItIsMissing) {
  (void)ensemble.put("/a");
  EXPECT_EQ(initialize(), Names{"node /a/b"});
  // Containers would go when the last lock does.
  for (const FakeRequest& request : ensemble.requests) {
    if (request.kind == Kind::create) {
      EXPECT_EQ(request.node, NodeKind::persistent);
    }
  }
  EXPECT_EQ(ensemble.dialled, 1) << "not the client's own session, whose root does not exist";
  EXPECT_EQ(ensemble.closed, 1);
  ensemble.remove("/a");
  EXPECT_EQ(initialize(), (Names{"node /a", "node /a/b"}));
  EXPECT_EQ(initialize(), Names());
  group = make_group();
  EXPECT_EQ(initialize(), Names()) << "there is none";
  EXPECT_EQ(ensemble.dialled, 3);
}

TEST_F(ChrootTest, WhatIsThereNeedsNoRights) {
  ensemble.closed_nodes = {"/"};
  std::optional<Result<Names>> answer;
  ask(answer);
  engine.run();
  EXPECT_EQ(answer.value().failure().code, errc::access_denied);
  (void)ensemble.put("/a");
  EXPECT_EQ(initialize(), Names{"node /a/b"});
  ensemble.closed_nodes = {"/", "/a"};
  EXPECT_EQ(initialize(), Names());
  ensemble.fate = [](const FakeRequest& request) { return request.kind == Kind::get ? Fate::forbid : Fate::answer; };
  EXPECT_EQ(initialize(), Names()) << "what may not be read exists";
}

TEST_F(ChrootTest, IsMadeThoughRequestsFail_AndNamed) {
  for (const Kind kind : {Kind::get, Kind::create}) {
    for (const Fate fate : {Fate::lose_answer, Fate::lose_request, Fate::refuse, Fate::hold_answer}) {
      (void)ensemble.put("/a");
      next(kind, fate);
      std::optional<Result<Names>> answer;
      ask(answer);
      engine.run();
      EXPECT_FALSE(answer);
      if (fate == Fate::hold_answer) ensemble.disconnect();
      engine.advance(100ms);
      ensemble.reconnect();
      engine.advance(1s);
      EXPECT_EQ(answer.value().value(), Names{"node /a/b"}) << static_cast<int>(kind) << static_cast<int>(fate);
      ensemble.remove("/a");
    }
  }
}

TEST_F(ChrootTest, MayBeAskedForByWhoeverWasJustAnswered) {
  std::optional<Result<Names>> again;
  group->initialize([&](const Result<Names>&) { ask(again); });
  engine.run();
  EXPECT_TRUE(again.value().value().empty());
}

TEST_F(ChrootTest, AServerThatIsBusyIsNotStormed) {
  ensemble.fate = [](const FakeRequest& request) { return request.kind == Kind::create ? Fate::refuse : Fate::answer; };
  std::optional<Result<Names>> answer;
  ask(answer);
  engine.advance(2s);
  const Failure& why = answer.value().failure();
  EXPECT_NE(why.detail.find("overloaded"), std::string::npos) << why.detail;
  EXPECT_LE(ensemble.count(Kind::create), 20U);
}

TEST_F(ChrootTest, EndsAtTheResponseTimeout) {
  ensemble.dialling = FakeEnsemble::Dialling::silence;
  std::vector<std::error_code> codes;
  for (int i = 0; i < 2; ++i) {
    group->initialize([&](const Result<Names>& made) { codes.push_back(made.failure().code); });
  }
  engine.advance(1999ms);
  EXPECT_TRUE(codes.empty());
  engine.advance(1ms);
  EXPECT_EQ(codes, std::vector<std::error_code>(2, errc::unavailable));
}

TEST_F(ChrootTest, TheClientMayGoMeanwhile) {
  next(Kind::create, Fate::hold_answer);
  group->initialize([](const Result<Names>&) { ADD_FAILURE() << "nobody is there any more"; });
  engine.run();
  group.reset();
  engine.advance(5s);
}

}  // namespace

}  // namespace dlock::zookeeper
