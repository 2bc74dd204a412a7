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
  using Answer = std::optional<Result<std::vector<std::string>>>;

  void ask(Answer& answer) {
    group->initialize([&](Result<std::vector<std::string>> made) { answer = std::move(made); });
  }
  // Where it is answered at once.
  Answer initialize() {
    Answer answer;
    ask(answer);
    engine.run();
    EXPECT_TRUE(answer);
    return answer;
  }

  std::unique_ptr<ZookeeperBackend> group = make_backend<ZookeeperBackend>({}, "/a/b");
};

TEST_F(ChrootTest, IsMadeWithWhatIsAboveIt) {
  (void)ensemble.put("/a");
  const Answer answer = initialize();
  ASSERT_TRUE(answer && answer->ok());
  EXPECT_EQ(answer->value(), std::vector<std::string>{"node /a/b"});
  // Containers would go when the last lock does.
  for (const FakeRequest& request : ensemble.requests) {
    if (request.kind == Kind::create) {
      EXPECT_EQ(request.node, NodeKind::persistent);
    }
  }
  EXPECT_EQ(ensemble.dialled, 1) << "not the client's own session, whose root does not exist";
  EXPECT_EQ(ensemble.closed, 1);
}

TEST_F(ChrootTest, MayBeMadeAgain) {
  for (const std::size_t made : {2U, 0U}) {
    const Answer answer = initialize();
    ASSERT_TRUE(answer && answer->ok());
    EXPECT_EQ(answer->value().size(), made);
  }
}

TEST_F(ChrootTest, IsNothingToMakeWhereThereIsNone) {
  group = make_group();
  const Answer answer = initialize();
  ASSERT_TRUE(answer && answer->ok());
  EXPECT_TRUE(answer->value().empty());
  EXPECT_EQ(ensemble.dialled, 0);
}

TEST_F(ChrootTest, IsMadeOverTheNextConnectionWhereOneBreaks) {
  next(Kind::create, Fate::hold_answer);
  Answer answer;
  ask(answer);
  engine.run();
  EXPECT_FALSE(answer);
  ensemble.disconnect();
  engine.run();
  ensemble.reconnect();
  engine.advance(100ms);
  EXPECT_TRUE(ensemble.exists("/a/b"));
}

TEST_F(ChrootTest, WhatIsThereNeedsNoRights) {
  (void)ensemble.put("/a");
  ensemble.closed_nodes = {"/"};
  Answer answer = initialize();
  ASSERT_TRUE(answer && answer->ok());
  EXPECT_EQ(answer->value(), std::vector<std::string>{"node /a/b"});
  ensemble.closed_nodes = {"/", "/a"};
  answer = initialize();
  ASSERT_TRUE(answer && answer->ok());
  EXPECT_TRUE(answer->value().empty());
}

TEST_F(ChrootTest, MayBeAskedForByWhoeverWasJustAnswered) {
  Answer again;
  group->initialize([&](const Result<std::vector<std::string>>&) { ask(again); });
  engine.run();
  ASSERT_TRUE(again && again->ok());
  EXPECT_TRUE(again->value().empty());
}

TEST_F(ChrootTest, WhatWasMadeThoughTheAnswerWasLostIsNamed) {
  (void)ensemble.put("/a");
  next(Kind::create, Fate::lose_answer);
  Answer answer;
  ask(answer);
  engine.advance(1s);
  ASSERT_TRUE(answer && answer->ok());
  EXPECT_EQ(answer->value(), std::vector<std::string>{"node /a/b"});
}

TEST_F(ChrootTest, AServerThatIsBusyIsNotStormed) {
  ensemble.fate = [](const FakeRequest& request) { return request.kind == Kind::create ? Fate::refuse : Fate::answer; };
  Answer answer;
  ask(answer);
  engine.advance(2s);
  ASSERT_TRUE(answer);
  ASSERT_FALSE(answer->ok());
  EXPECT_NE(answer->failure().detail.find("overloaded"), std::string::npos) << answer->failure().detail;
  EXPECT_LE(ensemble.count(Kind::create), 20U);
}

TEST_F(ChrootTest, AMissingRightIsSaid) {
  ensemble.closed_nodes = {"/"};
  const Answer answer = initialize();
  ASSERT_TRUE(answer);
  ASSERT_FALSE(answer->ok());
  EXPECT_EQ(answer->failure().code, errc::access_denied);
}

TEST_F(ChrootTest, EndsAtTheResponseTimeout) {
  ensemble.dialling = FakeEnsemble::Dialling::silence;
  std::vector<std::error_code> codes;
  for (int i = 0; i < 2; ++i) {
    group->initialize([&](const Result<std::vector<std::string>>& made) {
      codes.push_back(made.ok() ? std::error_code() : made.failure().code);
    });
  }
  engine.run();
  EXPECT_TRUE(codes.empty());
  engine.advance(2s);
  EXPECT_EQ(codes, (std::vector<std::error_code>{errc::unavailable, errc::unavailable}));
}

TEST_F(ChrootTest, TheClientMayGoMeanwhile) {
  next(Kind::create, Fate::hold_answer);
  group->initialize([](const Result<std::vector<std::string>>&) { ADD_FAILURE() << "nobody is there any more"; });
  engine.run();
  group.reset();
  engine.advance(5s);
}

}  // namespace

}  // namespace dlock::zookeeper
