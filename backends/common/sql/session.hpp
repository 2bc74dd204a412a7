// Queries and their answers over one connection, with deadlines and heartbeats. A session that is kept up connects when
// it is first needed, and again when its connection breaks (common::Reconnect): the client's commands have one, its
// LISTEN another. Other sessions connect once, for a lock that is lost with the connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/common/reconnect.hpp"
#include "backends/common/request_table.hpp"
#include "backends/common/sql/connection.hpp"
#include "backends/common/sql/dialect.hpp"
#include "backends/common/sql/full_server.hpp"

namespace dlock::sql {

// The shortest lease that heartbeats can keep. A session has three of them in a lease.
inline constexpr std::chrono::nanoseconds shortest_session_lease = std::chrono::milliseconds(150);

// The settings for connecting. The objects that it refers to outlive its users.
struct Dialling {
  const Dialect& dialect;
  ConnectionFactory connections;
  std::chrono::nanoseconds connect_timeout{};
  std::chrono::nanoseconds response_timeout{};
  std::string endpoint = {};   // for messages, until a server has answered
  FullServer* full = nullptr;  // nullptr: this client never makes room

  [[nodiscard]] bool makes_room() const { return full != nullptr && full->makes_room(); }
  [[nodiscard]] bool keeps_away() const { return full != nullptr && full->keeps_away(); }
};

enum class Upkeep {
  kept_up,  // connects again
  once,     // its locks are lost with its connection
};

struct Request {
  Query query = {};
  // Without an answer by then: not_sent or unknown_outcome. If it was sent, the server may still execute it, unless the
  // connection is closed, too.
  TimePoint deadline = TimePoint::max();
  // The query may wait in the server. The session sends no heartbeat meanwhile, and closes the connection at the
  // deadline, not before. No other request should be in flight.
  bool blocks = false;
  // No lock that is held depends on it: it waits while this client keeps away from a full server.
  bool patient = false;
  // Not about locks: its answer does not show that the server answers requests about locks.
  bool aside = false;
};

// The payload of a request in the session's table.
struct SessionRequest {
  Request request;  // without its query, once that is sent
  bool heartbeat = false;
  Handler done;  // empty: withdrawn
};

// In tasks only.
class Session final : private Connection::Listener, private common::RequestTable<SessionRequest>::User {
 public:
  // The session calls none of them inside a call to it, except break_off(). Each of them may destroy it.
  class User {
   public:
    User() = default;
    User(const User&) = delete;
    User& operator=(const User&) = delete;
    // A new connection is ready, and server() is known. Requests that wait are sent after this call.
    virtual void session_ready() = 0;
    // It broke, or could not be made; the requests that had been sent have been answered. Unless the session is over,
    // it connects again; after a final refusal (any reason but errc::unavailable and errc::ambiguous) only once it is
    // wanted.
    virtual void session_down(const Failure& why, bool was_ready) = 0;
    // The server answered a request that was sent then, so the session existed after that.
    virtual void session_alive(TimePoint /*sent*/) {}
    // The server answered the first request of a connection; or a heartbeat, unless the last request was not answered.
    virtual void session_answered() {}
    // The session is about to close its connection, and the server still has its locks: notify the holders first.
    virtual void session_ending(const Failure& /*why*/) {}
    // The connection was closed to make room at a full server. The session connects again once it is wanted.
    virtual void session_left() {}
    // Locks would be lost with the connection: without an answer, it is kept until their leases expire.
    [[nodiscard]] virtual bool session_holds() const { return true; }
    virtual void session_notified(const std::string& /*channel*/, const std::string& /*payload*/) {}

   protected:
    ~User() = default;
  };
  using RequestId = std::uint64_t;  // never 0

  Session(Executor& executor, const Dialling& dialling, Purpose purpose, Upkeep upkeep, User& user);
  ~Session();

  // Connects unless it is connected; ends a pause early. A request does this, too. patient: not while this client keeps
  // away from a full server.
  void want(bool patient = false);
  [[nodiscard]] bool ready() const noexcept { return reconnect_.is_ready() && connection_->usable(); }
  // It was to connect once, and its connection is gone; or it was stopped.
  [[nodiscard]] bool over() const noexcept { return reconnect_.is_over(); }
  // About the last connection that was ready.
  [[nodiscard]] const ServerInfo& server() const noexcept { return server_; }
  // Why it is not ready.
  [[nodiscard]] const Failure& problem() const noexcept { return reconnect_.problem(); }
  // The number of connections that were ready so far.
  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
  // No request waits or is in flight.
  [[nodiscard]] bool idle() const noexcept;

  // Calls the handler once, never inside the call. Without a connection the request waits for one; if none can be made,
  // the outcome is not_sent.
  RequestId request(Request request);
  RequestId request(Query query, TimePoint deadline) {
    return request(Request{.query = std::move(query), .deadline = deadline});
  }
  // The handler is not called. True: it was not sent and never will be. Ignores an unknown id.
  bool withdraw(RequestId id) { return requests_.withdraw(id); }

  // Closes the connection; a session that is kept up connects again.
  void break_off(const Failure& why);
  // Closes the session; no handler and no user is called any more.
  void stop();

 private:
  using Requests = common::RequestTable<SessionRequest>;

  void send(Requests::Entry entry);
  void answered(RequestId id, const Outcome& outcome, const Results& results);
  void fail_waiting(const Failure& why);

  void connect();
  void leave_if_idle();

  void beat();
  void send_heartbeat();
  void schedule_beat();

  void connection_ready() override;
  void connection_lost(const Failure& why) override;
  void connection_notified(const std::string& channel, const std::string& payload) override;

  void requests_catch_up() override;
  TimePoint requests_unresponsive() override;
  void requests_overdue(std::vector<Requests::Entry> sent, std::vector<Requests::Entry> unsent) override;

  Executor& executor_;
  const Dialling& dialling_;
  const Purpose purpose_;
  const Upkeep upkeep_;
  User& user_;
  const std::chrono::nanoseconds silence_;  // after this time without an answer, the session sends a heartbeat

  Requests requests_;
  std::uint64_t epoch_ = 0;
  bool closed_at_request_ = false;  // the connection was lost with a request: then answered heartbeats prove nothing
  TimePoint last_alive_;            // when the newest query that was answered had been sent
  Timer beat_timer_;

  ServerInfo server_;
  bool makes_room_ = false;  // this connection was made while the client made room
  bool breaking_off_ = false;
  common::Reconnect reconnect_;
  Lifetime lifetime_;
  std::unique_ptr<Connection> connection_;  // destroyed first: it calls nothing any more
};

}  // namespace dlock::sql
