// A session of the client: one at a time, kept alive, judged by our own clock (liveness.hpp), and replaced when it has
// ended.
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
// Nothing is sent before the first heartbeat is answered because a server that refuses the client answers the first
// request, and closes. If more had been sent, that answer would mostly be lost.
//
// A connection is good once a request about locks was answered over it. Some servers and proxies close the connection
// upon requests, or upon requests of one kind: then the next connection is good once a request of that kind was
// answered, or after some time. Until one is good, there is a pause before each is used. The pauses grow.
//
// The heartbeat is a write, of nothing: the removal of a node that never exists. Servers that are cut off from the
// ensemble continue to answer reads and the client library's own pings, and a leader that has lost its followers
// answers even a sync. But the ensemble must agree on the result of a write, even of an error.
//
// Once our deadline has passed the session has ended for us, even if the server still knows it: its locks have been
// reported as lost and another client may count on them. So the session is closed, and with it go the nodes that it
// still has; then there is a new one.
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
  // None of them is called from inside a call to the session. When a fresh session is ready, every request of the one
  // before has been answered.
  class User {
   public:
    User() = default;
    User(const User&) = delete;
    User& operator=(const User&) = delete;
    // A session stands (again). `fresh`: it is a new one, and nothing of the one before is left.
    virtual void session_ready(bool fresh) = 0;
    // Behind that: the connection is good, or no request about locks was to be sent. May be called from
    // request_answered().
    virtual void session_good() {}
    // The server answered: ephemeral nodes are safe until then.
    virtual void session_alive(TimePoint valid_until) = 0;
    // Not connected just now; the nodes may be there until session_alive()'s last time. Also: no session could be made.
    // Repeated for each connection that breaks before it was ready. Attempts go on by themselves, unless no session
    // stands and the reason is errc::access_denied: then only after the next want().
    virtual void session_suspended(const Failure& why) = 0;
    // The session's nodes can no longer be relied on: it expired, or was not confirmed in time. Its watches fire.
    // The reason is errc::lost.
    virtual void session_lost(const Failure& why) = 0;

   protected:
    ~User() = default;
  };

  Session(Executor& executor, const Options& options, HandleFactory handles, User& user);

  // It is needed: connects if there is no connection and none is being made. Once wanted, a session is kept up
  // until close() or rest().
  void want();
  // It is not needed for now: what there is of it is closed in the background, and nothing is tried any more until the
  // next want(). Its watches fire; the user is told nothing.
  void rest();
  // It was not wanted yet, or not since rest().
  [[nodiscard]] bool idle() const noexcept { return reconnect_.is_idle(); }

  // Whether requests may be sent. False while suspended or lost.
  [[nodiscard]] bool ready() const noexcept { return link_ == Link::ready && !liveness_.is_over(executor_.now()); }
  // Only while ready().
  [[nodiscard]] Handle& handle() noexcept { return *connector_.handle(); }
  // Grows with every new session, so that what belongs to an earlier one can be told. 0: there was none yet.
  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
  [[nodiscard]] std::int64_t id() const noexcept;
  // Until when what the session holds is safe, whatever server fails.
  [[nodiscard]] TimePoint valid_until() const noexcept { return liveness_.valid_until(); }
  // Zero while no session stands.
  [[nodiscard]] std::chrono::milliseconds granted_timeout() const noexcept { return liveness_.timeout(); }
  // Why it is not ready.
  [[nodiscard]] Failure problem() const;

  // Receives the ids of watches of the handle that fire; all_watches: those of a session that has ended.
  using WatchHandler = std::function<void(Handle::WatchId)>;
  static constexpr Handle::WatchId all_watches = 0;
  void on_watch(WatchHandler fired) { watch_fired_ = std::move(fired); }

  // A create or a remove was answered by a server (no problem, no_node or node_exists): the session lived when it was
  // carried out, after `sent`. Reads and syncs say nothing: a server that has lost the ensemble answers them for a
  // while from what it remembers, and the session may have been ended by the others meanwhile.
  void acknowledged(TimePoint sent) { liveness_.acknowledged(sent, executor_.now()); }
  // A request about locks is sent, and this is its outcome.
  enum class Kind { create, set, remove, read };
  void request_sent(Kind kind) noexcept { ++in_flight_.at(static_cast<std::size_t>(kind)); }
  void request_answered(Kind kind, const Outcome& outcome);
  // Sends a write of nothing, the heartbeat's. Once it is answered (no problem), what is read in this session is no
  // older than the call. Only while ready().
  void confirm_leader(Handle::DoneHandler done);

  // For good. Then calls done.
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
  // The handle is of no further use.
  void end(const std::string& why, errc problem = errc::unavailable);
  void reset();

  Executor& executor_;
  const Options& options_;
  User& user_;
  Connector connector_;
  common::Reconnect reconnect_;  // ready: a session stands, or is suspended
  Liveness liveness_;
  WatchHandler watch_fired_;
  std::uint64_t epoch_ = 0;
  Failure problem_;
  bool held_back_ = false;  // a wish does not end the pause

  // The connection of the handle.
  Link link_ = Link::none;
  std::uint64_t connection_ = 0;  // grows with each
  bool beating_ = false;
  TimePoint reported_until_ = TimePoint::min();
  bool good_ = false;
  TimePoint ready_since_;
  std::array<std::size_t, 4> in_flight_{};  // requests about locks over this connection, of each kind
  std::bitset<4> doubtful_;  // the kinds that were in flight when a connection broke, and not answered since
  std::size_t hung_up_ = 0;  // connections that broke upon a request since one was good
  Backoff until_used_;       // after those
  Timer connect_timer_;
  Timer heartbeat_timer_;
  Timer deadline_timer_;
};

}  // namespace dlock::zookeeper
