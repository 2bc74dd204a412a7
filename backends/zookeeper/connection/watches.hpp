// Watches of nodes: one in the server for all waiters of this client for a node, and no more than the client library
// can set again. After a disconnection it sends all paths in one packet, and a server refuses one of more than 1 MiB,
// every time.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/zookeeper/connection/session.hpp"

namespace dlock::zookeeper {

// In tasks only.
class Watches {
 public:
  enum class Kind {
    data,      // of an existing node
    children,  // of an existing node
    presence,  // of a node: its creation, its removal, and its data
  };

  // One waiter's interest in a node, until its destruction.
  class Interest;

  Watches(Executor& executor, Session& session, std::size_t chroot_bytes, std::size_t max_bytes = default_max_bytes);
  ~Watches();
  Watches(const Watches&) = delete;
  Watches& operator=(const Watches&) = delete;

  // Sent by a get, a list or an exists. `changed` is called at most once, in a task. nullptr: too much is watched
  // already; poll.
  [[nodiscard]] std::unique_ptr<Interest> watch(Kind kind, const std::string& path, std::function<void()> changed);

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  static constexpr std::size_t default_max_bytes = 640 * 1024;

 private:
  // A watch in the server, or one that is to be set there.
  struct Entry {
    const std::string key;  // the kind and the path
    const bool of_presence;
    const std::size_t bytes;
    const Handle::WatchId id;
    std::list<Interest*> interested = {};
    std::size_t in_flight = 0;  // requests that may set it
    bool set = false;
    bool over = false;  // it fired
  };

  void fire(const std::shared_ptr<Entry>& entry);
  void erase(Entry& entry);
  void erase_unless_needed(Entry& entry);
  [[nodiscard]] std::function<void(Problem)> request_sent(const std::shared_ptr<Entry>& entry);

  Executor& executor_;
  const std::size_t overhead_;
  const std::size_t max_bytes_;
  std::size_t bytes_ = 0;
  Handle::WatchId last_id_ = 0;
  std::map<Handle::WatchId, std::shared_ptr<Entry>> entries_;
  std::unordered_map<std::string, Handle::WatchId> ids_;  // by key
  Lifetime lifetime_;
};

class Watches::Interest {
 public:
  Interest(Watches& watches, std::shared_ptr<Entry> entry, std::function<void()> changed);
  Interest(const Interest&) = delete;
  Interest& operator=(const Interest&) = delete;
  ~Interest();

  // Send this id with the get or list that sets the watch, and wrap its handler in counted(): a watch in the server
  // counts until it fires, even if no handler is left for it. If the node does not exist, only a watch of its presence
  // can fire; for others, all handlers are called at once.
  [[nodiscard]] Handle::WatchId id() const noexcept { return entry_->id; }
  template <class T>
  [[nodiscard]] Handle::Handler<T> counted(Handle::Handler<T> done) {
    return [answered = watches_.request_sent(entry_), done = std::move(done)](const Outcome& outcome, T answer) {
      answered(outcome.problem);
      done(outcome, std::move(answer));
    };
  }

 private:
  friend class Watches;

  Watches& watches_;
  const std::shared_ptr<Entry> entry_;
  const std::shared_ptr<const std::function<void()>> changed_;
  const std::list<Interest*>::iterator place_;
};

}  // namespace dlock::zookeeper
