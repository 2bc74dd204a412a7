// An acquire is a place in a queue of keys: the oldest one holds the lock, each of the others waits for the one before
// it to go. (The oldest n of a semaphore's keys hold it; a reader waits for the writer before it.) A try takes a place
// only where nobody is before it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include <dlock/backend.hpp>
#include <dlock/releases.hpp>

#include "backends/etcd/connection/client.hpp"
#include "backends/etcd/connection/session.hpp"
#include "backends/etcd/connection/watches.hpp"
#include "backends/etcd/locks/batches.hpp"
#include "backends/etcd/locks/holds.hpp"

namespace dlock::etcd {

class QueueContention;

// In tasks only. Outlives the contentions that it makes.
class Queue {
 public:
  Queue(BackendHost& host, Client& client, Session& session, Watches& watches);
  ~Queue();

  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink);
  // As in Backend. nullptr, and the sink is not called: there is no session yet, or there are too many.
  [[nodiscard]] std::unique_ptr<Contention> contend_for_all(const std::vector<LockRequest>& requests, GrantSink& sink);
  void release(const Grant& grant, Backend::ReleaseHandler done);

  void session_ready();
  void session_alive(TimePoint valid_until) { holds_.session_alive(valid_until); }
  void session_suspended(const Failure& why);
  void session_lost(const Failure& why);

 private:
  friend class QueueContention;
  friend class AllOrNone;

  // The owner gives up its key. doubt: a request to make it was not answered, and may still be carried out.
  void give_up(const std::string& key, const OwnerId& owner, bool doubt);
  // A late request to make the key finds, where there is doubt, that its owner is gone.
  void remove(const std::string& key, const OwnerId& owner, TimePoint deadline, Releases::Answer answer);
  template <class F>
  void for_each(F&& f);

  BackendHost& host_;
  Client& client_;
  Session& session_;
  Watches& watches_;
  Batches batches_;
  std::unordered_set<OwnerId> doubtful_;  // a request to make their key may still be carried out
  Releases releases_;
  Holds holds_;
  std::uint64_t next_id_ = 0;
  std::map<std::uint64_t, QueueContention*> contentions_;  // in the order of their acquires
  Failure trouble_;                                        // why no session stands, once it is known
};

}  // namespace dlock::etcd
