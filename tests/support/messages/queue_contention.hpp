// Waiting in the store's queue: an example of a backend that implements Contention itself.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/backoff.hpp>
#include <dlock/spi/cleanup.hpp>
#include <dlock/spi/executor.hpp>

#include "tests/support/messages/connection.hpp"

namespace dlock::messages {

class QueueContention;

// The client's side of the queue: finds the contention that an answer or notice is for. In tasks only.
class QueueClient {
 public:
  QueueClient(Connection& connection, Cleanup& cleanup) noexcept : connection_(connection), cleanup_(cleanup) {}

  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink);

  void notified(LockKind kind, const std::string& name, const OwnerId& owner,
                const memory::MemoryStore::Answer& answer);

  // The owner has been granted the lock, so messages about it are no sign of anything left behind, until it releases
  // the lock or has lost it. Needed only for owners about which messages may yet arrive.
  void keep(const OwnerId& owner) { kept_.insert(owner); }
  void drop(const OwnerId& owner) { kept_.erase(owner); }
  // The store sent something for this owner, which waits for nothing: an answer to a request that was delayed or
  // doubled, however late, or news that the owner's turn has come.
  void unexpected(const Cleanup::Claim& claim);

 private:
  friend class QueueContention;
  [[nodiscard]] QueueContention* find(const OwnerId& owner) const;

  Connection& connection_;
  Cleanup& cleanup_;
  std::unordered_set<OwnerId> kept_;
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
