// One acquire in the queue, from the first request to the grant or to giving up.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <dlock/spi/waiter.hpp>

#include "backends/etcd/locks/keys.hpp"
#include "backends/etcd/locks/queue.hpp"
#include "backends/etcd/wire/messages.hpp"

namespace dlock::etcd {

class QueueContention final : public SessionWaiter {
 public:
  QueueContention(Queue& queue, const LockRequest& request, GrantSink& sink);
  ~QueueContention() override { cancel(); }

 private:
  void resume() override;
  void give_up() override;
  void place_lost() override { own_ = {}; }
  void entered(Stage stage) override;

  using OnAnswer = void (QueueContention::*)(const TransactionAnswer&);
  void send(Transaction transaction, bool creates_key, OnAnswer f);
  void request_failed(const Failure& why, bool created_key);

  // For a try that needs more than one request.
  void read_queue();
  void queue_read(const TransactionAnswer& answer);
  void create_key();
  void key_created(const TransactionAnswer& answer);
  void key_not_created(const TransactionAnswer& answer);
  void read_place();
  void place_read(const TransactionAnswer& answer);
  // before: the nearest keys that this acquire waits for, the newest first, at that revision.
  void judge(const std::vector<KeyValue>& before, std::int64_t revision);
  void watch(const KeyRange& range);
  void announce();
  void announced(const TransactionAnswer& answer);
  void grant();
  [[nodiscard]] Read nearest_before(std::size_t limit) const;

  Queue& queue_;
  const Place place_;
  const bool in_one_request_;  // a try
  OwnKey own_;
  bool waited_ = false;       // perhaps behind others
  std::int64_t read_at_ = 0;  // the revision at which the keys before this one were read
  std::unique_ptr<Watches::Interest> watch_;
};

}  // namespace dlock::etcd
