// The client's session: one at a time, kept alive, judged by our own clock, and replaced when it is over.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <dlock/executor.hpp>

#include "backends/zookeeper/handle.hpp"
#include "backends/zookeeper/options.hpp"

namespace dlock::zookeeper {

// Throws Error where the client library cannot even begin (host names that do not resolve are no such case).
using HandleFactory =
    std::function<std::unique_ptr<Handle>(Executor& executor, const Options& options, Handle::Listener& listener)>;

// In tasks only.
class Session final : private Handle::Listener {
 public:
  // Told in this order where several apply. None of them is called from inside a call to the session.
  class User {
   public:
    User() = default;
    User(const User&) = delete;
    User& operator=(const User&) = delete;
    // A session stands (again). `fresh`: it is a new one, everything of the one before is over.
    virtual void session_ready(bool fresh) = 0;
    // The server was heard of: ephemeral nodes are safe until then.
    virtual void session_alive(TimePoint valid_until) = 0;
    // Not connected just now; the nodes may be there until session_alive()'s last time.
    virtual void session_suspended(const Failure& why) = 0;
    // The session's nodes can no longer be relied on: it expired, or was not heard of in time.
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

  // Somebody needs it: connects if there is no connection and none is being made.
  void want();

  // Whether requests may be sent. False while suspended or lost.
  [[nodiscard]] bool ready() const noexcept;
  // Only while ready().
  [[nodiscard]] Handle& handle() noexcept { return *handle_; }
  // Grows with every new session, so that what belongs to an earlier one can be told. 0: there was none yet.
  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
  [[nodiscard]] std::int64_t id() const noexcept;
  // Until when what the session holds is safe: send time of the last request that was answered, plus the timeout that
  // the server granted, less a margin for clocks (lease_valid_until()).
  [[nodiscard]] TimePoint valid_until() const noexcept { return valid_until_; }
  [[nodiscard]] std::chrono::milliseconds granted_timeout() const noexcept;
  // Why it is not ready.
  [[nodiscard]] const Failure& problem() const noexcept { return problem_; }

  // `changed` is called at most once, as a task. Watches of a session that is over fire.
  [[nodiscard]] std::unique_ptr<Watch> watch(std::function<void()> changed);
  // A request was answered: tells the session that its server lives. Every answer without problem counts.
  void heard(TimePoint sent);

  // For good. Then calls done.
  void close(std::function<void()> done);

 private:
  void session_event(Handle::Event event) override;
  void watch_fired(Handle::WatchId id) override;
  void forget_watch(Handle::WatchId id);

  Executor& executor_;
  const Options& options_;
  HandleFactory handles_;
  User& user_;
  std::unique_ptr<Handle> handle_;
  std::uint64_t epoch_ = 0;
  TimePoint valid_until_ = TimePoint::min();
  Failure problem_;
  std::unordered_map<Handle::WatchId, std::function<void()>> watches_;
};

}  // namespace dlock::zookeeper
