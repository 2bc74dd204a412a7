// An acquire is a place in a queue of keys: the oldest one holds the lock, each of the others waits for the one before
// it to go. (The oldest n of a semaphore's keys hold it; a reader waits for the writer before it.) A try takes a place
// only where no key is before it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/cleanup.hpp>

#include "backends/etcd/connection/client.hpp"
#include "backends/etcd/connection/session.hpp"
#include "backends/etcd/connection/watches.hpp"
#include "backends/etcd/locks/batches.hpp"
#include "backends/etcd/locks/holds.hpp"
#include "backends/etcd/locks/keys.hpp"

namespace dlock::etcd {

class QueueContention;

// The numbers that tell the keys of a session apart. Each is used again: until a cluster forgets its history, it looks
// at all keys that a lock ever had whenever it looks for those that the lock has.
class KeyNumbers {
 public:
  // where: what the keys of the lock begin with.
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
class Queue {
 public:
  Queue(BackendHost& host, Client& client, Session& session, Watches& watches);
  ~Queue();

  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink);
  void release(const Grant& grant, Backend::ReleaseHandler done);

  void session_ready();
  void session_alive(TimePoint valid_until) { holds_.session_alive(valid_until); }
  void session_suspended(const Failure& why);
  void session_lost(const Failure& why);

 private:
  friend class QueueContention;

  [[nodiscard]] std::string new_key(const Place& place);
  // Of a key of this session that is not there, nor will be.
  void free(const std::string& key);
  // The owner gives up its key. created: the revision; 0: it is not there, as far as is known. doubtful: the last of
  // the requests to make it, if one of them was not answered and may still be carried out; otherwise 0.
  void give_up(const std::string& key, const OwnerId& owner, std::int64_t created, std::uint64_t doubtful);
  // A late request to make the key finds, where there is doubt, that it was given up; its number is not used again.
  // Without doubt another acquire may have that number by the time that a late request to remove the key comes, which
  // finds another revision then.
  void remove(const std::string& key, const OwnerId& owner, TimePoint deadline, Cleanup::Answer answer);
  // The mark of a request is there, and does for all earlier ones: theirs go when there are many.
  void marked(std::uint64_t request);

  BackendHost& host_;
  Client& client_;
  Session& session_;
  Watches& watches_;
  Batches batches_;
  KeyNumbers numbers_;
  std::uint64_t last_request_ = 0;  // the number of the last one to make a key
  // Of owners of which a request to make their key may still be carried out: the last request.
  std::unordered_map<OwnerId, std::uint64_t> doubtful_;
  std::set<std::uint64_t> marked_;                     // requests
  std::unordered_map<OwnerId, std::int64_t> created_;  // the revisions of keys that are to go
  Cleanup cleanup_;
  Holds holds_;
  std::uint64_t next_id_ = 0;
  std::map<std::uint64_t, QueueContention*> contentions_;  // in the order of their acquires
  Failure trouble_;                                        // why no session stands, once it is known
};

}  // namespace dlock::etcd
