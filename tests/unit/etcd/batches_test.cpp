// Transactions that are sent together: in which order, and until when.
#include "backends/etcd/locks/batches.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client_fixture.hpp"

namespace dlock::etcd {
namespace {

using namespace std::chrono_literals;

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
                      if (when_told) when_told();
                    });
    return outcome;
  }

  std::vector<std::shared_ptr<Outcome>> ahead;
  std::vector<TransactionAnswer> answers;
  std::function<void()> when_told;
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

TEST_F(EtcdBatchesTest, Handler_MayDestroyTheBatches) {
  const auto one = submit(Transaction().read({.range = {"a"}}));
  const auto two = submit(Transaction().read({.range = {"b"}}));
  when_told = [this] { batches.reset(); };
  batches->fail_waiting({errc::lost, "the session is over"});
  EXPECT_EQ(one->told, 1);
  EXPECT_EQ(one->failure.code, errc::lost);
  EXPECT_EQ(two->told, 0);
}

}  // namespace
}  // namespace dlock::etcd
