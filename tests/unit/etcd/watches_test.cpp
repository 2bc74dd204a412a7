// Watches: their reports, and when they are set again.
#include "backends/etcd/connection/watches.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "client_fixture.hpp"

namespace dlock::etcd {
namespace {

using namespace std::chrono_literals;
constexpr std::int64_t any = Watches::any_revision;
using Revisions = std::vector<std::int64_t>;

class EtcdWatchesTest : public EtcdClientFixture {
 protected:
  EtcdWatchesTest() {
    when_ready = [this] { watches->client_ready(); };
    when_down = [this] { watches->client_down(); };
  }

  struct Told {
    Revisions news;
    std::unique_ptr<Watches::Interest> interest;
    std::function<void()> then;
  };
  std::unique_ptr<Told> watch(const std::string& key) {
    auto told = std::make_unique<Told>();
    told->interest = watches->watch({key}, false, [to = told.get()](std::int64_t revision) {
      to->news.push_back(revision);
      if (const auto then = to->then) then();
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

TEST_F(EtcdWatchesTest, Watch_ReportsRemovalsAndIsSetOnEachConnection) {
  const auto early = watch("k");
  EXPECT_TRUE(early->news.empty());
  connect();
  EXPECT_EQ(early->news, Revisions{any});
  make("k");
  const auto told = watch("k");
  etcd.remove("k");
  engine.run();
  EXPECT_EQ(told->news, (Revisions{2, 3}));
  etcd.break_connections();
  EXPECT_EQ(told->news.size(), 2U);
  engine.advance(1s);
  EXPECT_EQ(told->news, (Revisions{2, 3, any}));
  make("k");
  etcd.remove("k");
  engine.run();
  EXPECT_EQ(told->news, (Revisions{2, 3, any, 5}));
}

TEST_F(EtcdWatchesTest, HistoryCompacted_WatchIsSetAgainAtOnce) {
  connect();
  make("a");
  const auto told = watch("k");
  etcd.compact();
  engine.run();
  const auto other = watch("a");
  EXPECT_EQ(told->news, (Revisions{2, any}));
  EXPECT_EQ(other->news, Revisions{2});
}

// Servers say that it is number -1.
TEST_F(EtcdWatchesTest, WatchRefused_AllOfItsStreamAreSetAgainAfterAPause) {
  connect();
  for (const bool says_which : {false, true}) {
    const auto first = watch("k");
    etcd.refuses_watch = [says_which](std::int64_t id) { return says_which ? id : -1; };
    const auto refused = watch("l");
    etcd.refuses_watch = nullptr;
    engine.advance(499ms);
    EXPECT_EQ(first->news, Revisions{1});
    EXPECT_TRUE(refused->news.empty());
    engine.advance(1ms);
    EXPECT_EQ(first->news, (Revisions{1, any}));
    EXPECT_EQ(refused->news, Revisions{any});
    EXPECT_EQ(watch("m")->news, Revisions{1});
  }
  EXPECT_TRUE(downs.empty());
}

TEST_F(EtcdWatchesTest, StreamEndedByTheMember_WatchesAreSetAgainAfterAPause) {
  connect();
  end_streams(7, "no");
  const auto told = watch("k");
  engine.advance(500ms);
  EXPECT_TRUE(told->news.empty());
  engine.advance(500ms);
  EXPECT_EQ(told->news, Revisions{any}) << "it failed twice";
  etcd.end_of_stream = nullptr;
  engine.advance(500ms);
  EXPECT_EQ(told->news, (Revisions{any, any, any}));
  EXPECT_TRUE(downs.empty());
}

TEST_F(EtcdWatchesTest, MemberEndsStreams_IsLeftAtOnceOrAfterAPause) {
  for (const bool stood : {false, true}) {
    connect();
    engine.advance(10s);
    if (!stood) end_streams(14, "gone");
    const auto told = watch("k");
    engine.advance(stood ? 10s : 400ms);
    EXPECT_TRUE(downs.empty());
    if (stood) end_streams(14, "etcdserver: no leader");
    const auto another = watch("l");  // does not put it off
    if (!stood) engine.advance(100ms);
    EXPECT_EQ(downs.size(), 1U);
    etcd.end_of_stream = nullptr;
    engine.advance(1s);
    downs.clear();
  }
}

TEST_F(EtcdWatchesTest, IdleStreamEndedByAProxy_WatchesAreSetAgainAtOnce) {
  connect();
  const auto told = watch("k");
  engine.advance(10s);
  etcd.end_of_stream = [ended = false](std::string_view) mutable -> std::optional<GrpcStatus> {
    if (std::exchange(ended, true)) return std::nullopt;
    return GrpcStatus{.code = 14, .message = "HTTP status 504 instead of an answer"};
  };
  const auto another = watch("l");
  EXPECT_EQ(told->news, (Revisions{1, any}));
  EXPECT_EQ(watch("k")->news, Revisions{1});
  EXPECT_TRUE(downs.empty());
}

TEST_F(EtcdWatchesTest, Handler_MayEndWatches) {
  for (const bool all : {false, true}) {
    const auto first = watch("k");
    const auto second = watch("k");
    first->then = [&] {
      first->interest.reset();
      second->interest.reset();
      if (!all) return;
      client->stop();  // as the backend does at its end
      watches.reset();
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
