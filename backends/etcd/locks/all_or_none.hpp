// An acquire of several locks in one transaction: keys for all of them if all their queues are empty, else for none. It
// is sent once; where its answer is missing, all keys are given up, in doubt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/etcd/locks/queue.hpp"
#include "backends/etcd/wire/messages.hpp"

namespace dlock::etcd {

class AllOrNone final : public Contention {
 public:
  // Of the 128 conditions that etcd takes, each lock needs two.
  static constexpr std::size_t most = 64;

  AllOrNone(Queue& queue, std::vector<LockRequest> requests, GrantSink& sink);
  ~AllOrNone() override;

  // While the session is ready.
  void start();

 private:
  void answered(const Result<TransactionAnswer>& answer);
  void grant(std::int64_t revision);
  // created: the revision; 0: they are not there, as far as is known.
  void give_up(std::int64_t created, bool doubt);

  Queue& queue_;
  const std::vector<LockRequest> requests_;
  GrantSink& sink_;
  std::int64_t lease_ = 0;         // that they are asked for with
  std::uint64_t asked_as_ = 0;     // the number of the request
  std::vector<std::string> keys_;  // empty: nothing of it is there, or may come
  Lifetime lifetime_;
};

}  // namespace dlock::etcd
