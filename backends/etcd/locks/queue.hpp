// An acquire is a place in a queue of keys: the oldest one holds the lock, each of the others waits for the one before
// it to be removed. (The oldest n of a semaphore's keys hold it; a reader waits for the writer before it.) A try takes
// a place only if no key is before it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/cleanup.hpp>
#include <dlock/spi/waiter.hpp>

#include "backends/etcd/connection/client.hpp"
#include "backends/etcd/connection/session.hpp"
#include "backends/etcd/connection/watches.hpp"
#include "backends/etcd/locks/batches.hpp"
#include "backends/etcd/locks/holds.hpp"
#include "backends/etcd/locks/keys.hpp"

namespace dlock::etcd {

// The numbers that tell the keys of a session apart. They are reused, because each search of a lock's keys takes etcd
// longer with every key that the lock ever had, until the history is compacted.
class KeyNumbers {
 public:
  // where: the prefix of the lock's keys.
  [[nodiscard]] std::uint32_t take(const std::string& where) {
    Numbers& numbers = taken_[where];
    ++numbers.taken;
    if (numbers.free.empty()) return numbers.next++;
    const std::uint32_t number = numbers.free.back();
    numbers.free.pop_back();
    return number;
  }
  void give_back(const std::string& where, std::uint32_t number) {
    const auto found = taken_.find(where);
    found->second.free.push_back(number);
    if (--found->second.taken == 0) taken_.erase(found);
  }

 private:
  struct Numbers {
    std::uint32_t next = 0;
    std::uint32_t taken = 0;
    std::vector<std::uint32_t> free;
  };
  std::unordered_map<std::string, Numbers> taken_;
};

// In tasks only. Outlives the contentions that it makes.
class Queue final : private SessionWaiters {
 public:
  Queue(BackendHost& host, Client& client, Session& session, Watches& watches);

  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink);
  void release(const Grant& grant, Backend::ReleaseHandler done);

  using SessionWaiters::session_ready;
  using SessionWaiters::session_suspended;
  void session_alive(TimePoint valid_until) { holds_.session_alive(valid_until); }
  void session_lost(const Failure& why);

 private:
  friend class QueueContention;

  [[nodiscard]] bool session_usable() const override { return session_.ready(); }
  void want_session() override { session_.want(); }
  [[nodiscard]] Failure session_problem() const override { return session_.problem(); }
  [[nodiscard]] std::chrono::nanoseconds session_lease() const override { return session_.ttl(); }
  [[nodiscard]] TimePoint session_valid_until() const override { return session_.valid_until(); }

  [[nodiscard]] std::string new_key(const Place& place);
  // The key of this session does not exist, and never will.
  void free(const std::string& key);
  // The owner gives up its key, which is removed as soon as the cluster is reachable.
  void remove_later(OwnKey key, const OwnerId& owner);
  // If a request to create the key may still be carried out, a mark makes that request fail, and the number is not
  // reused. Otherwise a late request to remove the key is harmless to an acquire that reuses the number: it finds a
  // different revision.
  void remove(const OwnerId& owner, TimePoint deadline, Cleanup::Answer answer);
  // The mark of a request exists, and replaces all earlier ones, which are removed if there are many.
  void marked(std::uint64_t request);

  Client& client_;
  Session& session_;
  Watches& watches_;
  Batches batches_;
  KeyNumbers numbers_;
  std::uint64_t last_request_ = 0;               // the number of the last one to create a key
  std::unordered_map<OwnerId, OwnKey> leaving_;  // keys to be removed
  std::size_t marks_ = 0;                        // in the cluster
  std::uint64_t last_mark_ = 0;
  Cleanup cleanup_;
  Holds holds_;
};

}  // namespace dlock::etcd
