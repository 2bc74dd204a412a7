// One acquire in the queue, from the first request to the grant or to giving up.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/backoff.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/etcd/locks/keys.hpp"
#include "backends/etcd/locks/queue.hpp"
#include "backends/etcd/wire/messages.hpp"

namespace dlock::etcd {

//   stage    | what it waits for
//   ---------+---------------------------------------------
//   unready  | a session
//   asking   | an answer
//   pausing  | a moment
//   watching | that a key before ours goes
//   over     | nothing: granted, refused, busy or given up
class QueueContention final : public Contention {
 public:
  QueueContention(Queue& queue, std::uint64_t id, const LockRequest& request, GrantSink& sink);
  ~QueueContention() override;

  void start();

  void session_ready();
  void session_suspended(const Failure& why);
  void session_lost();

 private:
  enum class Stage { unready, asking, pausing, watching, over };
  enum class Key { none, asked_for, there };

  void resume();
  // Before a try, where it cannot be made in one request.
  void look_first();
  void looked_first(const TransactionAnswer& answer);
  void enqueue();
  void enqueued(const TransactionAnswer& answer);
  void not_enqueued(const TransactionAnswer& answer);
  void look();
  void looked(const TransactionAnswer& answer);
  // before: the nearest keys that ours waits for, the youngest first, as they were at that revision.
  void judge(std::vector<KeyValue> before, std::int64_t revision);
  void watch(const KeyRange& range);
  void told(Watches::News news, std::int64_t revision);
  void announce();
  void announced(const TransactionAnswer& answer);

  void grant();
  void busy();
  void fail(Failure why);
  // What went wrong with a request. made: it was to make the key.
  void trouble(const Failure& why, bool made);
  void retry_later();
  void wait_for_session();
  void give_up();
  // Nothing that is under way concerns us any more.
  void leave(Stage stage);
  // Sends it; f is given the answer, unless this is gone or has moved on. makes: a key.
  void ask(Transaction transaction, bool makes, void (QueueContention::*f)(const TransactionAnswer&));
  [[nodiscard]] Read nearest_before(std::size_t limit) const;

  Queue& queue_;
  const std::uint64_t id_;
  const LockRequest request_;
  GrantSink& sink_;
  const Place place_;
  const bool in_one_request_;  // a try
  Stage stage_ = Stage::unready;
  std::uint64_t round_ = 0;  // answers to questions of an earlier one are of no interest
  std::string key_;
  Key state_ = Key::none;
  std::uint64_t asked_as_ = 0;  // the number of the last request to make the key
  bool doubt_ = false;          // one of them was not answered: it may be carried out at any time
  std::int64_t created_ = 0;
  std::int64_t looked_at_ = 0;  // the revision
  KeyRange watched_;
  bool news_ = false;    // came with the watch while an answer was waited for
  bool waited_ = false;  // behind others, perhaps
  Backoff backoff_{std::chrono::seconds(2)};
  Timer timer_;
  std::unique_ptr<Watches::Interest> watch_;
  Lifetime lifetime_;
};

}  // namespace dlock::etcd
