#include "backends/etcd/locks/batches.hpp"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "backends/common/reconnect.hpp"

namespace dlock::etcd {

namespace {

// etcd accepts 128 operations in all, and each transaction of dlock has at most five conditions or steps.
constexpr std::size_t most_together = 64;
constexpr std::size_t most_under_way = 2;

}  // namespace

Batches::Batches(Client& client)
    : client_(client),
      together_(client.options().user.empty() && (!client.options().tls || client.options().tls->cert_file.empty())),
      longest_hold_(client.options().response_timeout / 16),
      timer_(client.executor()) {}

void Batches::submit(Transaction transaction, std::string_view lock, TimePoint deadline, Handler done) {
  const TimePoint send_by = saturating_add(client_.executor().now(), longest_hold_);
  waiting_.push_back({std::move(transaction), std::string(lock), deadline, send_by, std::move(done)});
  send_waiting();
}

void Batches::fail_waiting(const Failure& why) {
  const Lifetime::Watch life = lifetime_.watch();
  for (const Item& item : std::exchange(waiting_, {})) {
    if (life.over()) return;
    item.done(why);
  }
}

bool Batches::may_send() const {
  return under_way_ < most_under_way || !together_ || client_.executor().now() >= waiting_.front().send_by;
}

void Batches::send_waiting() {
  while (!waiting_.empty() && may_send()) send(next_batch());
  if (!waiting_.empty() && !timer_.armed()) timer_.arm(waiting_.front().send_by, [this] { send_waiting(); });
}

// In the order of their calls, except a second acquire of a lock, and those whose deadlines are far from the first
// one's, because a batch has one deadline. Within a revision, removals come before reads, so a watch from that revision
// on misses nothing.
Batches::Batch Batches::next_batch() {
  Batch batch;
  std::deque<Item> left;
  std::set<std::string> locks;
  const TimePoint first = waiting_.front().deadline;
  for (Item& item : waiting_) {
    const bool full = batch.size() == (together_ ? most_together : 1);
    const bool far = std::chrono::abs(item.deadline - first) > longest_hold_;
    if (full || far || (!item.lock.empty() && !locks.insert(item.lock).second)) {
      left.push_back(std::move(item));
    } else {
      batch.push_back(std::move(item));
    }
  }
  waiting_ = std::move(left);
  std::stable_partition(batch.begin(), batch.end(), [](const Item& item) { return item.transaction.removes(); });
  return batch;
}

void Batches::send(Batch batch) {
  ++under_way_;
  TimePoint deadline = TimePoint::max();
  std::vector<Transaction> transactions;
  transactions.reserve(batch.size());
  for (Item& item : batch) {
    deadline = std::min(deadline, item.deadline);
    transactions.push_back(batch.size() == 1 ? std::move(item.transaction) : item.transaction);
  }
  std::string request = batch.size() == 1 ? transactions.front().request() : together(transactions);
  client_.call(method_transaction, std::move(request), deadline,
               lifetime_.guard([this, batch = std::make_shared<Batch>(std::move(batch)),
                                transactions = std::move(transactions)](const Result<std::string>& answer, TimePoint) {
                 --under_way_;
                 const Lifetime::Watch life = lifetime_.watch();
                 answered(*batch, transactions, answer);
                 if (!life.over()) send_waiting();
               }));
}

void Batches::answered(Batch& batch, const std::vector<Transaction>& transactions, const Result<std::string>& answer) {
  const Lifetime::Watch life = lifetime_.watch();
  if (batch.size() == 1) {
    if (!answer.ok()) return batch.front().done(answer.failure());
    return batch.front().done(read_transaction(answer.value(), transactions.front().steps()));
  }
  // Nothing was carried out, perhaps because of a single transaction.
  if (!answer.ok() && common::is_final_refusal(answer.failure()) && answer.failure().code != errc::lost) {
    for (Item& item : batch) {
      Batch alone;
      alone.push_back(std::move(item));
      send(std::move(alone));
    }
    return;
  }
  const auto answers = answer.ok() ? read_together(answer.value(), transactions)
                                   : Result<std::vector<TransactionAnswer>>(answer.failure());
  for (std::size_t i = 0; i < batch.size() && !life.over(); ++i) {
    if (answers.ok()) {
      batch[i].done(answers.value()[i]);
    } else {
      batch[i].done(answers.failure());
    }
  }
}

}  // namespace dlock::etcd
