// Waiting in the store's queue: an example of a backend that implements Contention itself.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include <dlock/clock.hpp>
#include <dlock/spi/backend.hpp>
#include <dlock/spi/backoff.hpp>
#include <dlock/spi/executor.hpp>
#include <dlock/token.hpp>

#include "tests/support/messages/connection.hpp"

namespace dlock::messages {

// Removes what owners that gave up have left in the store, even if messages are lost. Releases by owner id, again and
// again until the store confirms it. A request of the owner that was delayed or doubled may arrive even after that,
// however late; the store's answer to it, or its news when that owner's turn comes, shows that there is something to
// release again. In tasks only.
class Cleanups {
 public:
  explicit Cleanups(Connection& connection) noexcept : connection_(connection) {}

  // What the owner may have in the store: a lease, which ends by itself, or also a place in the queue, which does not.
  enum class Stake { lease, place };
  void start(LockKind kind, const std::string& name, const OwnerId& owner, std::chrono::nanoseconds lease, Stake stake);

  // The owner has been granted the lock, so messages about it are no sign of anything left behind, until it releases
  // the lock or has lost it. Needed only for owners about which messages may yet arrive.
  void keep(const OwnerId& owner) { kept_.insert(owner); }
  void drop(const OwnerId& owner) { kept_.erase(owner); }
  // The store sent something for this owner, which waits for nothing.
  void heard_of(LockKind kind, const std::string& name, const OwnerId& owner);

  // Calls done once nothing is left to be confirmed.
  void finish(std::function<void()> done);

 private:
  struct Entry {
    explicit Entry(Executor& executor) : timer(executor) {}
    LockKind kind = LockKind::lock;
    std::string name;
    TimePoint moot;      // when there can be nothing left of the owner
    bool again = false;  // a message about the owner came since the last release was sent
    Backoff backoff{std::chrono::seconds(1)};
    Timer timer;
  };

  void start_until(LockKind kind, const std::string& name, const OwnerId& owner, TimePoint moot);
  void release(const OwnerId& owner);
  void confirmed(const OwnerId& owner);
  void failed(const OwnerId& owner);
  void forget(const OwnerId& owner);
  void report_if_finished();

  Connection& connection_;
  std::unordered_map<OwnerId, Entry> entries_;  // until the store has confirmed
  std::unordered_set<OwnerId> kept_;
  std::function<void()> finished_;
};

class QueueContention;

// The client's side of the queue: finds the contention that an answer or notice is for. In tasks only.
class QueueClient {
 public:
  QueueClient(Connection& connection, Cleanups& cleanups) noexcept : connection_(connection), cleanups_(cleanups) {}

  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink);

  void notified(LockKind kind, const std::string& name, const OwnerId& owner,
                const memory::MemoryStore::Answer& answer);

 private:
  friend class QueueContention;
  [[nodiscard]] QueueContention* find(const OwnerId& owner) const;

  Connection& connection_;
  Cleanups& cleanups_;
  std::unordered_map<OwnerId, QueueContention*> waiting_;
};

// Asks to be queued, then waits until the lock is handed over. Asking again does no harm, so it is done whenever that
// may help: by the first in line when the current lease ends (the store does not notice that by itself), after a
// request that failed or was not answered, and now and then in case news were lost.
class QueueContention final : public Contention {
 public:
  QueueContention(QueueClient& client, const LockRequest& request, GrantSink& sink);
  ~QueueContention() override;

  void ask();
  void answered(TimePoint sent, Result<memory::MemoryStore::Answer> answer);
  void notified(const memory::MemoryStore::Answer& answer);

 private:
  void granted(FencingToken token, TimePoint since);
  void first_in_line(TimePoint lease_ends);
  void ask_again_at(TimePoint at);
  [[nodiscard]] TimePoint lost_news_check();

  QueueClient& client_;
  const LockRequest request_;
  GrantSink& sink_;
  bool granted_ = false;     // reported; the lock is the core's business now
  bool queued_ = false;      // the store may know of us
  bool expects_ = false;     // news, or answers to requests that went as messages, may yet come
  bool unanswered_ = false;  // a request that we gave up on may yet arrive
  int under_way_ = 0;        // requests that we still expect an answer to
  Backoff backoff_{std::chrono::seconds(1)};
  Timer timer_;
};

}  // namespace dlock::messages
