// The client's session: one at a time, kept alive, judged by this client's clock (liveness.hpp), and replaced when it
// ends.
//
//   state      | what happens                             | until                        | then
//   -----------+------------------------------------------+------------------------------+--------------------------
//   idle       | nothing                                  | want()                       | connecting
//   connecting | a handle looks for a server              | connected                    | proving
//              | (connector.hpp)                          | failed, refused              | pausing
//   proving    | the first request over a connection, a   | answered                     | ready
//              | heartbeat, is unanswered; nothing else   | disconnected, new session    | pausing
//              | is sent                                  | disconnected, else           | suspended
//   ready      | requests and heartbeats                  | disconnected                 | suspended
//   suspended  | the client library looks for a server;   | connected                    | proving
//              | the nodes are safe until valid_until()   |                              |
//   a session: proving (again), ready, suspended          | expired, deadline passed     | lost, then pausing
//   pausing    | nothing; the pauses grow until a         | its end, or a want()         | connecting
//              | connection was good                      |                              |
//   all        |                                          | rest()                       | idle
//   all        |                                          | close()                      | over
//
// Before the first heartbeat is answered, nothing else is sent: a server that refuses the client answers the first
// request and closes the connection, and if more had been sent, that answer would mostly be lost.
//
// A connection is good once a request about locks was answered over it. Some servers and proxies close the connection
// after requests, or after requests of one kind: then the next connection is good once a request of that kind was
// answered, or after some time. Until one is good, there is a growing pause before each is used.
//
// The heartbeat is a write without effect: the removal of a node that never exists. Servers cut off from the ensemble
// still answer reads and the client library's own pings, and a leader that has lost its followers answers even a sync.
// But the ensemble must agree on the result of a write, even of an error.
//
// Once the client's deadline has passed, the session is over, even if the server still knows it: its locks were
// reported as lost, and a different client may rely on that. So the session is closed, which removes its remaining
// nodes, and then replaced.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include <dlock/spi/backoff.hpp>
#include <dlock/spi/executor.hpp>

#include "backends/common/reconnect.hpp"
#include "backends/zookeeper/connection/connector.hpp"
#include "backends/zookeeper/connection/handle.hpp"
#include "backends/zookeeper/connection/liveness.hpp"
#include "backends/zookeeper/options.hpp"

namespace dlock::zookeeper {

// In tasks only.
class Session final : private Handle::Listener {
 public:
  // Never called inside a call to the session. When a fresh session is ready, every request of the last one has been
  // answered.
  class User {
   public:
    User() = default;
    User(const User&) = delete;
    User& operator=(const User&) = delete;
    // There is a session (again). `fresh`: it is new, and nothing of the last one is left.
    virtual void session_ready(bool fresh) = 0;
    // After session_ready(): the connection is good, or no request about locks was to be sent. May be called from
    // request_answered().
    virtual void session_good() {}
    // The server answered: ephemeral nodes are safe until then.
    virtual void session_alive(TimePoint valid_until) = 0;
    // Not connected; the nodes may exist until session_alive()'s last time. Or no session could be made. Repeated for
    // each connection that breaks before it was ready. Retries continue by themselves, except if there is no session
    // and the reason is errc::access_denied: then only after the next want().
    virtual void session_suspended(const Failure& why) = 0;
    // The session's nodes are no longer reliable: it expired, or was not confirmed in time. Its watches fire. The
    // reason is errc::lost.
    virtual void session_lost(const Failure& why) = 0;

   protected:
    ~User() = default;
  };

  Session(Executor& executor, const Options& options, HandleFactory handles, User& user);

  // Connects, unless there is a connection or an attempt. Once wanted, a session is kept alive until close() or rest().
  void want();
  // Closes the session in the background, and makes no attempt until the next want(). Its watches fire; the user is not
  // notified.
  void rest();
  // Not wanted yet, or not since rest().
  [[nodiscard]] bool idle() const noexcept { return reconnect_.is_idle(); }

  // Whether requests may be sent. False while suspended or lost.
  [[nodiscard]] bool ready() const noexcept { return link_ == Link::ready && !liveness_.is_over(executor_.now()); }
  // Only while ready().
  [[nodiscard]] Handle& handle() noexcept { return *connector_.handle(); }
  // Grows with each new session, to tell its belongings from those of earlier ones. 0: there was none yet.
  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
  [[nodiscard]] std::int64_t id() const noexcept;
  // Until when the session's nodes are safe, whatever server fails.
  [[nodiscard]] TimePoint valid_until() const noexcept { return liveness_.valid_until(); }
  // Zero: there is no session.
  [[nodiscard]] std::chrono::milliseconds granted_timeout() const noexcept { return liveness_.timeout(); }
  // The reason why it is not ready.
  [[nodiscard]] Failure problem() const;

  // Receives the ids of watches of the handle that fire; all_watches: those of a session that has ended.
  using WatchHandler = std::function<void(Handle::WatchId)>;
  static constexpr Handle::WatchId all_watches = 0;
  void on_watch(WatchHandler fired) { watch_fired_ = std::move(fired); }

  // A server answered a create or a remove (no problem, no_node or node_exists): the session was alive when it was
  // carried out, after `sent`. Reads and syncs prove nothing: a server that has lost the ensemble answers them for a
  // while from its own data, and the others may have ended the session meanwhile.
  void acknowledged(TimePoint sent) { liveness_.acknowledged(sent, executor_.now()); }
  // A request about locks is sent, and this is its outcome.
  enum class Kind { create, set, remove, read };
  void request_sent(Kind kind) noexcept { ++in_flight_.at(static_cast<std::size_t>(kind)); }
  void request_answered(Kind kind, const Outcome& outcome);
  // Sends a heartbeat. Once it is answered (no problem), reads in this session are no older than the call. Only while
  // ready().
  void confirm_leader(Handle::DoneHandler done);

  // Ends all activity, then calls done.
  void close(std::function<void()> done);

 private:
  enum class Link { none, proving, ready };

  void session_event(Handle::Event event, const Failure& why) override;
  void watch_fired(Handle::WatchId id) override;

  void open();
  void connected();
  void proven();
  void refused(const Failure& why);
  void check_good(bool lasted);
  [[nodiscard]] bool nothing_in_flight() const noexcept;
  void disconnected(const Failure& broken);
  [[nodiscard]] std::string why_broken(const Failure& broken) const;
  void beat();
  void beat_later(TimePoint at);
  void heartbeat_answered(const Outcome& outcome);
  void report_alive();
  void await_deadline();
  [[nodiscard]] std::string overdue() const;
  void suspend(const Failure& why);
  // Ends the session and closes the useless handle.
  void end(const std::string& why, errc problem = errc::unavailable);
  void reset();

  Executor& executor_;
  const Options& options_;
  User& user_;
  Connector connector_;
  common::Reconnect reconnect_;  // ready: there is a session, perhaps suspended
  Liveness liveness_;
  WatchHandler watch_fired_;
  std::uint64_t epoch_ = 0;
  Failure problem_;
  bool held_back_ = false;  // want() does not end the pause

  // The connection of the handle.
  Link link_ = Link::none;
  std::uint64_t connection_ = 0;  // grows with each
  bool beating_ = false;
  TimePoint reported_until_ = TimePoint::min();
  bool good_ = false;
  TimePoint ready_since_;
  std::array<std::size_t, 4> in_flight_{};  // requests about locks over this connection, of each kind
  std::bitset<4> doubtful_;  // the kinds that were in flight when a connection broke, and not answered since
  std::size_t hung_up_ = 0;  // connections that broke after a request since one was good
  Backoff until_used_;       // after those
  Timer connect_timer_;
  Timer heartbeat_timer_;
  Timer deadline_timer_;
};

}  // namespace dlock::zookeeper
