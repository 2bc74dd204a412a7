// Queries and their answers over one connection: with deadlines, and noticing a server that has gone silent. A session
// that is kept up is connected when it is first wanted, and again when its connection breaks (common::Reconnect): the
// client's commands have one, its LISTEN another. Others are connected once, for a lock that is lost with them.
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
#include "backends/postgres/sessions/full_server.hpp"
#include "backends/postgres/sql/connection.hpp"

namespace dlock::postgres {

// As short as a lease may be that is kept by heartbeats: a session is heard of three times in it.
inline constexpr std::chrono::nanoseconds shortest_session_lease = std::chrono::milliseconds(150);

// How connections are made, and how long anything may take. What it refers to outlives its users.
struct Dialling {
  const Options& options;
  ConnectionFactory connections;
  std::chrono::nanoseconds connect_timeout{};
  std::chrono::nanoseconds response_timeout{};
  FullServer* full = nullptr;  // what this client knows about that; nullptr: it takes no notice

  // This client makes room for others at a full server; and does not connect yet.
  [[nodiscard]] bool makes_room() const { return full != nullptr && full->makes_room(); }
  [[nodiscard]] bool keeps_away() const { return full != nullptr && full->keeps_away(); }
};

enum class Upkeep {
  kept_up,  // there is always to be a connection
  once,     // what it was good for is gone with it
};

struct Request {
  Query query = {};
  // Then the answer is given up: not_sent or unknown_outcome. What was sent may still be carried out, unless the
  // connection is given up, too.
  TimePoint deadline = TimePoint::max();
  // The server may keep it waiting. The connection is given up at the deadline, not before, and is not asked whether it
  // is still there meanwhile. Nothing else should be under way on it.
  bool blocks = false;
  // No holder depends on it: it waits for the connection for as long as this client keeps away from a full server.
  bool patient = false;
  // Not about locks: its answer does not show that the server answers requests about locks.
  bool aside = false;
};

// What the session keeps of one.
struct SessionRequest {
  Request request;  // without its query, once that is sent
  bool heartbeat = false;
  Handler done;  // empty: the answer is not wanted any more
};

// In tasks only.
class Session final : private Connection::Listener, private common::RequestTable<SessionRequest>::User {
 public:
  // None of them is called inside a call to the session but receive() and break_off(). Any may destroy it.
  class User {
   public:
    User() = default;
    User(const User&) = delete;
    User& operator=(const User&) = delete;
    // A connection stands: a new one, with nothing of the one before. server() says what it leads to. What waits is
    // sent right after.
    virtual void session_ready() = 0;
    // It broke, or could not be made; what had been sent has been answered. Unless the session has ended, the next one
    // is made by itself - but after a final refusal (any reason but errc::unavailable and errc::ambiguous) only when it
    // is wanted.
    virtual void session_down(const Failure& why, bool was_ready) = 0;
    // The server answered something that was sent then, so it knew the session after that.
    virtual void session_alive(TimePoint /*sent*/) {}
    // The server answered the first request of a connection; or a heartbeat, unless the last request was not answered.
    virtual void session_answered() {}
    // It is about to be given up, and the server has not noticed: the holders of its locks are to be told first.
    virtual void session_ending(const Failure& /*why*/) {}
    // The connection was closed because others need it more, at a full server. The next one is made when it is wanted.
    virtual void session_left() {}
    // With the connection locks would be lost, so it is kept without an answer for as long as they are safe.
    [[nodiscard]] virtual bool session_holds() const { return true; }
    virtual void session_notified(const std::string& /*channel*/, const std::string& /*payload*/) {}

   protected:
    ~User() = default;
  };
  using RequestId = std::uint64_t;  // never 0

  Session(Executor& executor, const Dialling& dialling, Purpose purpose, Upkeep upkeep, User& user);
  ~Session();

  // Connects unless it is connected; sooner than planned where it is pausing. A request does the same. patient: not
  // while this client keeps away from a full server.
  void want(bool patient = false);
  [[nodiscard]] bool ready() const noexcept { return reconnect_.is_ready() && connection_->usable(); }
  // It was to be made once, and is gone; or was stopped.
  [[nodiscard]] bool over() const noexcept { return reconnect_.is_over(); }
  // Of the last connection that stood.
  [[nodiscard]] const ServerInfo& server() const noexcept { return server_; }
  // Why it is not ready.
  [[nodiscard]] const Failure& problem() const noexcept { return reconnect_.problem(); }
  // Grows with every connection that stands, so that what belongs to an earlier one can be told. 0: there was none yet.
  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
  // No request is waiting or under way.
  [[nodiscard]] bool idle() const noexcept;

  // The handler is called once, never inside the call. Where there is no connection the request waits for it; when none
  // can be made it is not_sent.
  RequestId request(Request request);
  RequestId request(Query query, TimePoint deadline) {
    return request(Request{.query = std::move(query), .deadline = deadline});
  }
  // The answer is not wanted any more: the handler is not called. True: it was not sent and never will be. An unknown
  // id is ignored.
  bool withdraw(RequestId id) { return requests_.withdraw(id); }

  // Something is wrong with this connection: give it up and, if it is kept up, make another.
  void break_off(const Failure& why);
  // For good; nothing is called any more.
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
  const std::chrono::nanoseconds silence_;  // as long as this, and we probe the server

  Requests requests_;
  std::uint64_t epoch_ = 0;
  bool closed_at_request_ = false;  // since then, a heartbeat that is answered says nothing about requests
  TimePoint last_alive_;            // when the newest query was sent that has been answered
  Timer beat_timer_;

  ServerInfo server_;
  bool makes_room_ = false;  // this connection was made at a full server, by a client that holds no lock
  bool breaking_off_ = false;
  common::Reconnect reconnect_;
  Lifetime lifetime_;
  std::unique_ptr<Connection> connection_;  // goes first: nothing is called back any more
};

}  // namespace dlock::postgres
