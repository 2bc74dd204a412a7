// Watches: what they are told, and when they are to be set anew.
#include "backends/etcd/connection/watches.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "client_fixture.hpp"

namespace dlock::etcd {
namespace {

using namespace std::chrono_literals;
using News = Watches::News;

class EtcdWatchesTest : public EtcdClientFixture {
 protected:
  EtcdWatchesTest() {
    when_ready = [this] { watches->client_ready(); };
    when_down = [this] { watches->client_down(); };
  }

  struct Told {
    std::vector<News> news;
    std::unique_ptr<Watches::Interest> interest;
    std::function<void(News)> then;
  };
  std::unique_ptr<Told> watch(const std::string& key) {
    auto told = std::make_unique<Told>();
    told->interest = watches->watch({key}, false, [to = told.get()](News news, std::int64_t) {
      to->news.push_back(news);
      if (const auto then = to->then) then(news);
    });
    engine.run();
    return told;
  }
  void make(const std::string& key) {
    (void)client->call(method_transaction, Transaction().put(key, "", 0).request(), client->answer_by(), {});
    engine.run();
  }

  void end_streams(int code, const char* message) {
    etcd.end_of_stream = [=](std::string_view) { return std::optional(GrpcStatus{.code = code, .message = message}); };
  }

  std::unique_ptr<Watches> watches = std::make_unique<Watches>(*client);
};

TEST_F(EtcdWatchesTest, TellThatTheyStandAndWhatGoesAndAreToBeSetAnewOnEachConnection) {
  const auto early = watch("k");
  EXPECT_TRUE(early->news.empty());
  connect();
  EXPECT_EQ(early->news, (std::vector{News::over}));
  make("k");
  const auto told = watch("k");
  etcd.remove("k");
  engine.run();
  EXPECT_EQ(told->news, (std::vector{News::standing, News::event}));
  etcd.break_connections();
  EXPECT_EQ(told->news.size(), 2U);
  engine.advance(1s);
  EXPECT_EQ(told->news, (std::vector{News::standing, News::event, News::over}));
}

TEST_F(EtcdWatchesTest, OfWhichTheHistoryIsGoneAreToBeSetAnewAtOnce) {
  connect();
  make("a");
  const auto told = watch("k");
  etcd.compact();
  engine.run();
  const auto other = watch("a");
  EXPECT_EQ(told->news, (std::vector{News::standing, News::over}));
  EXPECT_EQ(other->news, (std::vector{News::standing}));
}

// Servers say that it is number -1.
TEST_F(EtcdWatchesTest, WhereOneIsRefusedAllOfItsStreamAreToBeSetAnewAfterAPause) {
  connect();
  for (const bool says_which : {false, true}) {
    const auto first = watch("k");
    etcd.refuses_watch = [says_which](std::int64_t id) { return says_which ? id : -1; };
    const auto refused = watch("l");
    etcd.refuses_watch = nullptr;
    engine.advance(499ms);
    EXPECT_EQ(first->news, (std::vector{News::standing}));
    EXPECT_TRUE(refused->news.empty());
    engine.advance(1ms);
    EXPECT_EQ(first->news, (std::vector{News::standing, News::over}));
    EXPECT_EQ(refused->news, (std::vector{News::over}));
    EXPECT_EQ(watch("m")->news, (std::vector{News::standing}));
  }
  EXPECT_TRUE(downs.empty());
}

TEST_F(EtcdWatchesTest, OfAStreamThatAMemberEndsAreToBeSetAnewAfterAPause) {
  connect();
  end_streams(7, "no");
  const auto told = watch("k");
  EXPECT_TRUE(told->news.empty());
  etcd.end_of_stream = nullptr;
  engine.advance(500ms);
  EXPECT_EQ(told->news, (std::vector{News::over}));
  EXPECT_TRUE(downs.empty());
}

TEST_F(EtcdWatchesTest, AMemberThatEndsStreamsAsSoonAsTheyAreOpenedIsLeftAfterAPause) {
  connect();
  engine.advance(10s);
  end_streams(14, "gone");
  const auto told = watch("k");
  engine.advance(400ms);
  EXPECT_TRUE(downs.empty());
  const auto another = watch("l");  // does not put it off
  engine.advance(100ms);
  EXPECT_EQ(downs.size(), 1U);
}

TEST_F(EtcdWatchesTest, AMemberThatEndsAStreamThatStoodIsLeftAtOnce) {
  connect();
  const auto told = watch("k");
  engine.advance(10s);
  end_streams(14, "etcdserver: no leader");
  const auto another = watch("l");
  EXPECT_EQ(downs.size(), 1U);
}

TEST_F(EtcdWatchesTest, OfAStreamThatAProxyFindsIdleAreToBeSetAnewAtOnceOnTheSameConnection) {
  connect();
  const auto told = watch("k");
  engine.advance(10s);
  end_streams(14, "HTTP status 504 instead of an answer");
  const auto another = watch("l");
  etcd.end_of_stream = nullptr;
  engine.run();
  EXPECT_EQ(told->news, (std::vector{News::standing, News::over}));
  EXPECT_EQ(watch("k")->news, (std::vector{News::standing}));
  EXPECT_TRUE(downs.empty());
}

TEST_F(EtcdWatchesTest, MayEndInsideWhatOneIsTold) {
  for (const bool all : {false, true}) {
    const auto first = watch("k");
    const auto second = watch("k");
    first->then = [&](News) {
      first->interest.reset();
      second->interest.reset();
      if (all) watches.reset();
    };
    client->want();
    engine.advance(1s);
    EXPECT_EQ(first->news.size(), 1U);
    EXPECT_TRUE(second->news.empty());
    if (!all) etcd.break_connections();
  }
}

}  // namespace
}  // namespace dlock::etcd
