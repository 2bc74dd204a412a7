// Transactions about locks. Those submitted while others are in flight are sent together, as one: one entry in the
// cluster's log instead of many, and one wait for its disks. They are held back for a bounded time only.
//
// Two acquires of one lock never go together: their keys would have the same revision, which decides the order. With a
// user or a client certificate, nothing does: etcd 3.4 checks no rights in nested transactions.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>
#include <dlock/spi/result.hpp>
#include <dlock/spi/task.hpp>

#include "backends/etcd/connection/client.hpp"
#include "backends/etcd/wire/messages.hpp"

namespace dlock::etcd {

// In tasks only.
class Batches {
 public:
  using Handler = Callback<const Result<TransactionAnswer>&>;

  explicit Batches(Client& client);

  // As Client::call(). lock: the lock for which it creates a key; empty: it creates none.
  void submit(Transaction transaction, std::string_view lock, TimePoint deadline, Handler done);
  // Fails those that were not sent yet. They name a lease that has ended, and etcd would refuse a batch with one of
  // them.
  void fail_waiting(const Failure& why);

 private:
  struct Item {
    Transaction transaction;
    std::string lock;
    TimePoint deadline;
    TimePoint send_by;
    Handler done;
  };
  using Batch = std::vector<Item>;

  void send_waiting();
  [[nodiscard]] bool may_send() const;
  [[nodiscard]] Batch next_batch();
  void send(Batch batch);
  void answered(Batch& batch, const std::vector<Transaction>& transactions, const Result<std::string>& answer);

  Client& client_;
  const bool together_;
  const std::chrono::nanoseconds longest_hold_;
  std::deque<Item> waiting_;
  std::size_t under_way_ = 0;
  Timer timer_;
  Lifetime lifetime_;
};

}  // namespace dlock::etcd
