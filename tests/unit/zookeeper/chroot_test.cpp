// Making the node that is everything's root.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backend_fixture.hpp"

namespace dlock::zookeeper {

namespace {

class ChrootTest : public BackendTest {
 protected:
  void ask(std::optional<Result<Names>>& answer) {
    group->initialize([&](Result<Names> made) { answer = std::move(made); });
  }
  Result<Names> try_initialize() {
    return answer_to<Names>([&](auto done) { group->initialize(std::move(done)); });
  }
  // The nodes that it created.
  Names initialize() { return try_initialize().value(); }

  std::unique_ptr<ZookeeperBackend> group = make<ZookeeperBackend>({}, "/a/b");
};

TEST_F(ChrootTest, MissingNodes_AreMadeToStay) {
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
  group = make<ZookeeperBackend>();
  EXPECT_EQ(initialize(), Names()) << "there is none";
  EXPECT_EQ(ensemble.dialled, 3);
}

TEST_F(ChrootTest, NodesThatExist_NeedNoRights) {
  ensemble.closed_nodes = {"/"};
  EXPECT_EQ(try_initialize().failure().code, errc::access_denied);
  (void)ensemble.put("/a");
  EXPECT_EQ(initialize(), Names{"node /a/b"});
  ensemble.closed_nodes = {"/", "/a"};
  EXPECT_EQ(initialize(), Names());
  always(Kind::get, Fate::forbid);
  EXPECT_EQ(initialize(), Names()) << "what may not be read exists";
}

TEST_F(ChrootTest, FailedRequest_IsRepeatedAndTheNodeNamed) {
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

TEST_F(ChrootTest, SecondRequestInTheHandler_IsAnswered) {
  std::optional<Result<Names>> again;
  group->initialize([&](const Result<Names>&) { ask(again); });
  engine.run();
  EXPECT_TRUE(again.value().value().empty());
}

TEST_F(ChrootTest, OverloadedServer_IsRetriedWithPauses) {
  always(Kind::create, Fate::refuse);
  std::optional<Result<Names>> answer;
  ask(answer);
  engine.advance(2s);
  const Failure& why = answer.value().failure();
  EXPECT_NE(why.detail.find("overloaded"), std::string::npos) << why.detail;
  EXPECT_LE(ensemble.count(Kind::create), 20U);
}

TEST_F(ChrootTest, SilentServer_EndsItAtTheResponseTimeout) {
  ensemble.dialling = Dialling::silence;
  std::vector<std::error_code> codes;
  for (int i = 0; i < 2; ++i) {
    group->initialize([&](const Result<Names>& made) { codes.push_back(made.failure().code); });
  }
  engine.advance(1999ms);
  EXPECT_TRUE(codes.empty());
  engine.advance(1ms);
  EXPECT_EQ(codes, std::vector<std::error_code>(2, errc::unavailable));
}

TEST_F(ChrootTest, ClientDestroyedMeanwhile_IsNotAnswered) {
  next(Kind::create, Fate::hold_answer);
  group->initialize([](const Result<Names>&) { ADD_FAILURE() << "nobody is there any more"; });
  engine.run();
  group.reset();
  engine.advance(5s);
}

}  // namespace

}  // namespace dlock::zookeeper
