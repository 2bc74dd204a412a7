// One session with a ZooKeeper ensemble, as the rest of the backend sees it: requests, their answers, and events. The
// real one uses libzookeeper_mt (c_handle.hpp); tests have their own.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dlock/clock.hpp>
#include <dlock/error.hpp>

namespace dlock::zookeeper {

// What an error code means for the request.
enum class Problem {
  none,
  no_node,
  node_exists,
  unknown_outcome,  // the connection broke, or the operation timed out: it may have been carried out, or may still be
  session_over,     // expired, or the handle is closed: every request of it ends like this
  not_executed,     // the server refused for now, until its state or an operator changes that; retry
  no_rights,        // ACL or authentication
  other,            // wrong arguments, an unsupported operation: a retry does not help
};

struct Outcome {
  Problem problem = Problem::none;
  Failure failure = {};  // for the caller, where there is a problem
  TimePoint sent = {};   // just before the request was handed to the client library
};

struct Stat {
  std::int64_t created = 0;  // czxid
  std::int64_t owner = 0;    // the session of an ephemeral node, else 0
  std::int32_t children = 0;
};

enum class NodeKind { ephemeral, ephemeral_sequential, container, persistent };

class Handle {
 public:
  // A watch fires at most once, when the watched node or its list of children changed; 0 is none.
  using WatchId = std::uint64_t;

  struct Created {
    std::string path;  // with the sequence number
    Stat stat;
  };
  struct Node {
    std::string data;
    Stat stat;
  };
  template <class T>
  using Handler = std::function<void(const Outcome&, T)>;
  using DoneHandler = std::function<void(const Outcome&)>;

  enum class Event {
    connected,     // there is a session (again)
    disconnected,  // the connection broke; the client library looks for a server
    expired,       // the session expired; the handle is useless
    auth_failed,   // the server refused what the URL said; as expired
    failed,        // the client library could not begin, because no host has an address for instance; as expired
  };
  // In tasks.
  class Listener {
   public:
    Listener() = default;
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;
    // why: of everything but `connected`.
    virtual void session_event(Event event, const Failure& why) = 0;
    virtual void watch_fired(WatchId id) = 0;

   protected:
    ~Listener() = default;
  };

  Handle() = default;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  // Closes the session in the background. No handler and no listener is called any more.
  virtual ~Handle() = default;

  // In tasks only. Requests are sent in the order of the calls, and those sent are answered in that order. Each is
  // answered exactly once, unless the handle is destroyed first, never inside the call. If a connection breaks between
  // two calls, the second request may be sent over the next connection.
  virtual void create(const std::string& path, const std::string& data, NodeKind kind, Handler<Created> done) = 0;
  virtual void get(const std::string& path, WatchId watch, Handler<Node> done) = 0;
  // The watch is set even if the node is missing.
  virtual void exists(const std::string& path, WatchId watch, Handler<Stat> done) = 0;
  virtual void children(const std::string& path, WatchId watch, Handler<std::vector<std::string>> done) = 0;
  virtual void set(const std::string& path, const std::string& data, DoneHandler done) = 0;
  virtual void remove(const std::string& path, DoneHandler done) = 0;
  // Also, atomically, only if the node has no children and is not ephemeral, whatever an earlier read found.
  virtual void remove_childless(const std::string& path, DoneHandler done) = 0;
  // Once it is answered, later reads of this session see at least what the leader had then.
  virtual void sync(const std::string& path, DoneHandler done) = 0;

  // 0: there is no session.
  [[nodiscard]] virtual std::int64_t session_id() const noexcept = 0;
  // As the server granted it; zero: there is no session.
  [[nodiscard]] virtual std::chrono::milliseconds session_timeout() const noexcept = 0;

  // There is no session, and a server is being connected to, or has yet to answer the request for one. Not while names
  // are resolved, nor between attempts.
  [[nodiscard]] virtual bool waits_for_server() const noexcept = 0;

  // Ends the session in the background, so that its nodes are removed at once if a server is reachable; then calls done
  // in a task. Pending requests end with session_over before. The listener gets no more events, and no request may
  // follow.
  virtual void close(std::function<void()> done) = 0;
};

}  // namespace dlock::zookeeper
