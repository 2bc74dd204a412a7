// Transactions about locks. Those that come while others are under way are sent together, as one: that is one entry in
// the cluster's log instead of many, and one wait for its disks. If those are slow, the wait for them is bounded.
//
// Two acquires of one lock never go together: their keys would have the same revision, which decides the order. Nor
// does anything where there is a login: etcd 3.4 checks no rights within a transaction of transactions.
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

  // As Client::call(). lock: what it makes a key for; empty: it makes none.
  void submit(Transaction transaction, std::string_view lock, TimePoint deadline, Handler done);
  // Those that were not sent yet will not be. They name a lease that has ended, and etcd would refuse what goes
  // together with them.
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
