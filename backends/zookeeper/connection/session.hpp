// A session of the client: one at a time, kept alive, judged by our own clock, and replaced when it has ended.
//
//   idle --want()--> connecting --> proving --> ready --> suspended --> proving
//                        ^            |           |           |
//                        |            v           v           v
//                        +--------- pausing <-- expired, or the deadline has passed
//
// rest() leads from each of them back to idle; close() is the end.
//
// Proving: a connection stands, and its first request, a heartbeat, is not answered yet. Nothing else is sent before
// that: a server that refuses the client answers the first request, and closes. If more had been sent, that answer
// would mostly be lost.
//
// A connection is good once a request about locks was answered over it. Some servers and proxies close the connection
// upon requests, or upon requests of one kind: then the next connection is good once a request of that kind was
// answered, or after some time. Until one is good, there is a pause before each is used. The pauses grow.
//
// The heartbeat is a write, of nothing: the removal of a node that never exists. Servers that are cut off from the
// ensemble go on answering reads and the client library's own pings from what they remember, and a leader that has lost
// its followers answers even a sync; but on how a write ends, if only with an error, the ensemble must agree.
//
// While no session stands, a host that does not answer is left for the next one in a list that each session shuffles:
// only a new handle leaves it before two thirds of the session timeout. A handle whose session may hold locks stays:
// the library cannot close it without ending that session, should it stand again at that moment.
//
// Once our deadline has passed the session has ended for us, even if the server still knows it: its locks have been
// reported as lost and another client may count on them. So the session is closed, and with it go the nodes that it
// still has; then there is a new one.
#pragma once

#include <array>
#include <bitset>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <dlock/spi/backoff.hpp>
#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/common/reconnect.hpp"
#include "backends/zookeeper/connection/handle.hpp"
#include "backends/zookeeper/options.hpp"

namespace dlock::zookeeper {

// Throws Error where the client library cannot even begin (host names that do not resolve are no such case).
using HandleFactory =
    std::function<std::unique_ptr<Handle>(Executor& executor, const Options& options, Handle::Listener& listener)>;

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
    // Behind that: the connection is good, or no request about locks was to be sent. May be called from answered().
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
  // Interest in a change of a node; ends with its destruction.
  class Watch {
   public:
    Watch(Session& session, Handle::WatchId id) noexcept : session_(&session), id_(id) {}
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch() { session_->forget_watch(id_); }
    [[nodiscard]] Handle::WatchId id() const noexcept { return id_; }

   private:
    Session* session_;
    Handle::WatchId id_;
  };

  Session(Executor& executor, const Options& options, HandleFactory handles, User& user);
  ~Session();

  // It is needed: connects if there is no connection and none is being made. Once wanted, a session is kept up
  // until close() or rest().
  void want();
  // It is not needed for now: what there is of it is closed in the background, and nothing is tried any more until the
  // next want(). Its watches fire; the user is told nothing.
  void rest();
  // It was not wanted yet, or not since rest().
  [[nodiscard]] bool idle() const noexcept { return reconnect_.is_idle(); }

  // Whether requests may be sent. False while suspended or lost.
  [[nodiscard]] bool ready() const noexcept;
  // Only while ready().
  [[nodiscard]] Handle& handle() noexcept { return *handle_; }
  // Grows with every new session, so that what belongs to an earlier one can be told. 0: there was none yet.
  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
  [[nodiscard]] std::int64_t id() const noexcept;
  // Until when what the session holds is safe, whatever server fails: the send time of the newest answered write of
  // which the leader has certainly been told, plus the timeout that was granted, less a margin for clocks
  // (lease_valid_until()). That write is a quarter of the timeout older than the last one.
  [[nodiscard]] TimePoint valid_until() const noexcept { return valid_until_; }
  [[nodiscard]] std::chrono::milliseconds granted_timeout() const noexcept;
  // Why it is not ready.
  [[nodiscard]] Failure problem() const;

  // `changed` is called at most once, as a task. Watches of a session that has ended fire.
  [[nodiscard]] std::unique_ptr<Watch> watch(std::function<void()> changed);
  // A create or a remove was answered by a server (no problem, no_node or node_exists): the session lived when it was
  // carried out, after `sent`. Reads and syncs say nothing: a server that has lost the ensemble answers them for a
  // while from what it remembers, and the session may have been ended by the others meanwhile.
  void heard(TimePoint sent);
  // A request about locks is sent, and this is its outcome.
  enum class Kind { create, set, remove, read };
  void asked(Kind kind) noexcept { ++under_way_.at(static_cast<std::size_t>(kind)); }
  void answered(Kind kind, const Outcome& outcome);
  // Sends a write of nothing, the heartbeat's. Once it is answered (no problem), what is read in this session is no
  // older than the call. Only while ready().
  void agree(Handle::DoneHandler done);

  // For good. Then calls done.
  void close(std::function<void()> done);

 private:
  void session_event(Handle::Event event) override;
  void watch_fired(Handle::WatchId id) override;
  void forget_watch(Handle::WatchId id) noexcept;

  void connect();
  void choose_host();
  void dial();
  void look_at_attempt();
  void leave_silent_host();
  [[nodiscard]] std::chrono::nanoseconds patience() const;
  void could_not_connect_in_time();
  [[nodiscard]] bool came_too_late(std::chrono::milliseconds granted) const;
  void connected();
  void stands();
  void refused(const Failure& why);
  void good();
  [[nodiscard]] bool asks_nothing() const noexcept;
  void disconnected();
  [[nodiscard]] std::string why_broken() const;
  void beat();
  void beat_due();
  void tell_alive();
  void await_deadline();
  [[nodiscard]] std::string overdue() const;
  // The handle is of no further use.
  void end(const std::string& why, errc problem);
  void forget_times();
  void retire_handle();
  void finish_closing();
  void fire_watches();
  [[nodiscard]] std::chrono::nanoseconds heartbeat_interval() const noexcept { return granted_ / 4; }

  Executor& executor_;
  const Options& options_;
  HandleFactory handles_;
  Options dialled_;  // the same, with the host in front that the next handle begins with
  User& user_;
  common::Reconnect reconnect_;  // ready: a session stands, or is suspended
  bool suspended_ = false;
  std::uint64_t connection_ = 0;  // grows with each
  bool proving_ = false;
  bool good_ = false;
  TimePoint ready_since_;
  std::array<std::size_t, 4> under_way_{};  // requests about locks over this connection, of each kind
  std::bitset<4> doubtful_;  // the kinds that were under way when a connection broke, and not answered since
  std::size_t hung_up_ = 0;  // connections that broke upon a request since one was good
  Backoff until_used_;       // after those
  bool held_back_ = false;   // a wish does not end the pause
  std::unique_ptr<Handle> handle_;
  std::vector<std::unique_ptr<Handle>> closing_;
  std::function<void()> closed_;

  std::uint64_t epoch_ = 0;
  std::chrono::milliseconds granted_{};
  TimePoint last_heard_ = TimePoint::min();  // when the last request was sent that says that the session lives
  std::deque<TimePoint> known_;              // such times, of which the leader may not have been told yet
  TimePoint valid_until_ = TimePoint::min();
  TimePoint told_until_ = TimePoint::min();
  // When the session is given up: valid_until_, but a new one gets the time for its first heartbeat.
  TimePoint deadline_ = TimePoint::min();
  bool beating_ = false;
  Failure problem_;

  TimePoint last_attempt_;  // before the handle was made
  TimePoint silent_since_;
  std::size_t silent_hosts_ = 0;  // left since a session stood
  bool asked_again_ = false;      // because the session before came too late
  Timer attempt_timer_;           // the next look at an attempt
  Timer connect_timer_;
  Timer heartbeat_timer_;
  Timer deadline_timer_;

  Handle::WatchId last_watch_ = 0;
  std::unordered_map<Handle::WatchId, std::function<void()>> watches_;
  Lifetime lifetime_;
};

}  // namespace dlock::zookeeper
