// An ensemble in memory, and handles of it, played by the test: no sockets, no time but the executors'.
//
//   FakeEnsemble ensemble(engine);
//   Session session(engine, options, ensemble.handles(), user);
//   session.want();
//   engine.run();                                             // connected
//   ensemble.fate = [](const FakeRequest& request) { return Fate::lose_answer; };
//
// As with real servers, answers come later and in order, and behind the events that the request itself caused.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/zookeeper/connection/handle.hpp"
#include "backends/zookeeper/connection/session.hpp"

namespace dlock::zookeeper {

class FakeHandle;

struct FakeRequest {
  enum class Kind { create, set, get, exists, children, remove, sync } kind;
  std::string path;
  std::string data = {};                // create, set
  NodeKind node = NodeKind::container;  // create
  Handle::WatchId watch = 0;            // get, exists, children
  std::int64_t session = 0;
  int process = 0;
};

// A session sends it by itself, to show that it lives.
[[nodiscard]] inline bool is_heartbeat(const FakeRequest& request) {
  return request.kind == FakeRequest::Kind::remove && request.path == "/%heartbeat/none";
}

enum class Fate {
  answer,
  lose_answer,   // carried out; the asker is told that the outcome is unknown
  lose_request,  // not carried out; the asker is told the same
  hold_answer,   // carried out; answered by release_answers(), or unknown when the connection breaks
  late,          // carried out after delay(), and before all that follows on that connection, even if that has broken
  silence,       // neither carried out nor answered, as all that follows on that connection
  refuse,        // not_executed
  forbid,        // no_rights
};

class FakeEnsemble {
 public:
  // The servers' executor, for their clock and timers. Clients are called in tasks of their own.
  explicit FakeEnsemble(Executor& executor) : executor_(executor) {}
  FakeEnsemble(const FakeEnsemble&) = delete;
  FakeEnsemble& operator=(const FakeEnsemble&) = delete;

  // The handles of a process.
  [[nodiscard]] HandleFactory handles(int process = 0);

  // The fate of the next handle, and of a reconnect().
  // refuse: nobody listens. require_auth: the first request is answered with a refusal, and the connection closed.
  enum class Dialling { accept, silence, refuse, fail, refuse_auth, require_auth };
  Dialling dialling = Dialling::accept;
  std::optional<std::chrono::milliseconds> granted;  // by default what was asked for
  // Hosts that accept connections and never answer. A handle goes to the first of its hosts.
  std::set<std::string> silent;
  // How long a server takes to make a session for a new handle.
  std::chrono::milliseconds answers_after{0};
  // By default everything is answered.
  std::function<Fate(const FakeRequest&)> fate;
  std::function<std::chrono::nanoseconds()> latency;  // of answers
  std::function<std::chrono::nanoseconds()> delay;    // of what is late
  // How long a handle waits, as the client library, before it connects again. Sessions then expire as well that were
  // asked for nothing during their timeout. By default both is for the test to do.
  std::optional<std::chrono::nanoseconds> connects_after;
  // A server has not told the leader of the requests of the last part of a session's timeout.
  double untold_part = 0;
  std::set<int> unreachable;  // processes that get no connection
  // Requests made while no connection stands are sent over the next one. Else their outcome is unknown.
  bool keeps_unsent = false;
  // Nodes below which nothing may be made or removed. As a server, this looks at the rights to a parent that exists
  // before it looks at the node.
  std::set<std::string> closed_nodes;
  // Watches go without being told.
  bool loses_events = false;
  void release_answers();

  // For all handles that are open, or for those of one session. What was held is answered with an unknown outcome.
  void disconnect(std::int64_t session = 0);
  // Handles that are not connected; a session that is over is notified of its end now.
  void reconnect(std::int64_t session = 0);
  // The server forgets the session and its nodes. A connected handle hears of it at once.
  void expire(std::int64_t session = 0);
  // Nothing more is carried out for the process, and it is told nothing more. Its sessions are left to expire.
  void bury(int process);

  // --- The tree, as somebody else's session sees and changes it; watches fire ---
  [[nodiscard]] bool exists(const std::string& path) const { return nodes_.contains(path); }
  [[nodiscard]] std::vector<std::string> children(const std::string& path) const;
  [[nodiscard]] std::string data(const std::string& path) const { return nodes_.at(path).data; }
  [[nodiscard]] Stat stat(const std::string& path) const;
  // Parents that are missing are made. owner 0: not ephemeral. Answers its path and czxid.
  Handle::Created put(const std::string& path, const std::string& data = {}, std::int64_t owner = 0,
                      bool sequential = false);
  // With everything below.
  void remove(const std::string& path);
  void set_data(const std::string& path, const std::string& data);
  // The number that the next sequential child gets.
  void set_sequence(const std::string& parent, std::int64_t next) { nodes_.at(parent).next_sequence = next; }
  [[nodiscard]] std::size_t watches() const;  // that could still fire

  // --- What happened ---
  std::vector<FakeRequest> requests;
  int dialled = 0;                         // handles made
  std::vector<std::string> dialled_first;  // the first host of each
  int closed = 0;                          // handles closed or destroyed
  int dropped = 0;                         // those that were destroyed without being closed
  [[nodiscard]] std::int64_t last_session() const noexcept { return last_session_; }
  // The process of a session that lives, or lived; 0 for none of ours.
  [[nodiscard]] int process_of(std::int64_t session) const;
  [[nodiscard]] std::vector<std::int64_t> sessions_of(int process) const;

 private:
  friend class FakeHandle;
  struct Node {
    std::string data;
    Stat stat;
    std::int64_t next_sequence = 0;
  };
  struct Watcher {
    FakeHandle* handle;
    Handle::WatchId id;
  };
  using Watchers = std::map<std::string, std::vector<Watcher>>;

  [[nodiscard]] static std::string parent_of(const std::string& path);
  [[nodiscard]] Problem create(const FakeRequest& request, Handle::Created& created);
  [[nodiscard]] Problem remove_node(const std::string& path);
  [[nodiscard]] std::string add(const std::string& path, const std::string& data, std::int64_t owner, bool sequential);
  void end_session(std::int64_t session);
  struct Session {
    int process;
    std::chrono::milliseconds timeout;
    TimePoint told{};  // when the leader was told of it
    bool lives = true;
  };
  [[nodiscard]] bool lives(std::int64_t session) const;
  void open_session(std::int64_t session, const Session& state);
  void keep(std::int64_t session, double untold);
  void end_in_time(std::int64_t session);
  static void watch(std::vector<Watcher>& watchers, const Watcher& watcher);
  void fire(Watchers& watchers, const std::string& path);
  [[nodiscard]] std::vector<FakeHandle*> open_handles(std::int64_t session) const;
  void forget(FakeHandle& handle);

  Executor& executor_;
  std::map<std::string, Node> nodes_{{"/", {}}};
  Watchers data_watches_;
  Watchers child_watches_;
  std::map<std::int64_t, Session> sessions_;
  std::set<int> dead_;  // processes
  std::vector<FakeHandle*> handles_;
  std::int64_t last_session_ = 0x1000;
  std::int64_t last_zxid_ = 0x100000000;
  Lifetime lifetime_;
};

}  // namespace dlock::zookeeper
