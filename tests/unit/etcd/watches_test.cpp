// Watches: their reports, and when they are set again. Transactions that are sent together: in which order, and until
// when.
#include "backends/etcd/connection/watches.hpp"

#include "backends/etcd/locks/batches.hpp"
#include "fixtures.hpp"

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
  };
  std::unique_ptr<Told> watch(const std::string& key) {
    auto told = std::make_unique<Told>();
    told->interest =
        watches->watch({key}, false, [to = told.get()](std::int64_t revision) { to->news.push_back(revision); });
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

class EtcdBatchesTest : public EtcdClientFixture {
 protected:
  // The next ones wait until these are answered, and then go together.
  void SetUp() override {
    connect();
    etcd.fate = [](std::string_view) { return Fate::held; };
    for (int i = 0; i < 2; ++i) ahead.push_back(submit(Transaction().read({.range = {"k"}})));
    engine.run();
  }

  std::shared_ptr<Outcome> submit(Transaction transaction, std::chrono::nanoseconds within = 2s) {
    auto outcome = std::make_shared<Outcome>();
    batches->submit(std::move(transaction), {}, engine.now() + within,
                    [this, outcome](const Result<TransactionAnswer>& answer) {
                      ++outcome->told;
                      outcome->failure = answer.ok() ? Failure{} : answer.failure();
                      if (answer.ok()) answers.push_back(answer.value());
                    });
    return outcome;
  }

  std::vector<std::shared_ptr<Outcome>> ahead;
  std::vector<TransactionAnswer> answers;
  std::unique_ptr<Batches> batches = std::make_unique<Batches>(*client);
};

// A waiter that reads a key watches it from the next revision on.
TEST_F(EtcdBatchesTest, Batch_RemovesBeforeItReads) {
  etcd.keys["k"] = {.key = "k", .value = "", .created = 1, .lease = 0};
  const auto look = submit(Transaction().read({.range = {"k"}}));
  const auto removal = submit(Transaction().remove({"k"}));
  etcd.fate = nullptr;
  etcd.answer_held();
  const int before = etcd.transactions;
  engine.run();
  ASSERT_EQ(etcd.transactions - before, 1);
  ASSERT_EQ(answers.size(), ahead.size() + 2);
  EXPECT_EQ(answers[2].steps.front().removed, 1);
  EXPECT_TRUE(answers[3].steps.front().keys.empty());
}

// For example those of releases that are repeated.
TEST_F(EtcdBatchesTest, DeadlineNear_DoesNotShortenThatOfOthers) {
  const auto hasty = submit(Transaction().read({.range = {"a"}}), 200ms);
  const auto patient = submit(Transaction().read({.range = {"b"}}));
  etcd.answer_held();
  engine.advance(200ms);
  EXPECT_EQ(hasty->failure.code, errc::ambiguous);
  EXPECT_EQ(patient->told, 0);
  etcd.answer_held();
  engine.run();
  EXPECT_EQ(patient->told, 1);
  EXPECT_FALSE(patient->failure.code);
}

TEST_F(EtcdBatchesTest, AnswersSlow_WaitingTransactionsAreSentAfterAMoment) {
  std::vector<std::shared_ptr<Outcome>> all;
  for (int i = 0; i < 16; ++i) all.push_back(submit(Transaction().read({.range = {"a"}})));
  engine.run();
  EXPECT_EQ(etcd.transactions, 2);
  engine.advance(125ms);
  EXPECT_EQ(etcd.transactions, 3);
  engine.advance(1200ms);
  etcd.answer_held();
  engine.run();
  for (const auto& each : all) EXPECT_FALSE(each->failure.code || each->told != 1);
}

}  // namespace
}  // namespace dlock::etcd
