// The sessions of a fake database, behind the connections of clients (FakeServer), and what goes wrong with what they
// send.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlock/duration.hpp>
#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "tests/simulation/service.hpp"
#include "tests/simulation/sql/fake_connection.hpp"

namespace dlock::sql {

struct NumberedSession {
  explicit NumberedSession(int of_number) : number(of_number) {}
  const int number;
};

// Received: a query that was received, `query`, and its `fate`.
template <class Received, class Base = NumberedSession>
struct FakeSession : Base {
  FakeSession(int of_number, int of_process, Purpose of_purpose, Executor& executor)
      : Base(of_number), process(of_process), purpose(std::move(of_purpose)), timer(executor) {}
  const int process;
  const Purpose purpose;
  std::deque<Received> queue = {};
  bool silent = false;       // nothing gets through any more
  bool broken = false;       // nor here, and the client learns of that
  bool terminated = false;   // it ends with that; else with what it has received
  bool client_left = false;  // that is
  bool open = false;         // a transaction of the client's own
  Timer timer;
};

template <class Session>
class FakeDatabase {
 public:
  using Fate = simulation::Fate;

  FakeDatabase(const FakeDatabase&) = delete;
  FakeDatabase& operator=(const FakeDatabase&) = delete;

  [[nodiscard]] auto connections(int process) { return wire_.connections(process); }
  // How it meets those who connect.
  [[nodiscard]] FakeServer& wire() { return wire_; }

  // --- What goes wrong: see simulation::Service ---
  std::function<Fate(int process, std::string_view words)> fate;
  std::function<std::chrono::nanoseconds()> delay = [] { return std::chrono::milliseconds(100); };
  std::chrono::nanoseconds latency{};  // of what it sends
  void cut(int process) {
    for (Session* const session : sessions_of(process)) break_off(*session, reset, {});
  }
  void set_reachable(int process, bool reachable) {
    reachable ? (void)wire_.unreachable.erase(process) : (void)wire_.unreachable.insert(process);
  }
  void expire(int process) {
    for (Session* const session : sessions_of(process)) {
      if (!session->silent) terminate(*session);
    }
  }
  void release_held() {
    for (const auto& [connection, query, reply] : std::exchange(held_, {})) wire_.answer(connection, query, reply);
  }
  void bury(int process) { wire_.bury(process); }

 protected:
  static constexpr const char* reset = "fake: connection reset by peer";

  // For its timers. terminated, code: of a session that an administrator ends.
  FakeDatabase(Executor& executor, std::uint64_t seed, FakeTraits traits, std::string terminated, std::string code)
      : executor_(executor),
        dice_(seed),
        wire_(std::move(traits)),
        terminated_(std::move(terminated)),
        code_(std::move(code)) {
    wire_.replies_to_heartbeats = true;
    wire_.records = false;
    wire_.opened = [this](int connection, int process, const Purpose& purpose) {
      sessions_.try_emplace(connection, connection, process, purpose, executor_);
    };
    wire_.gone = [this](int connection) {
      if (const auto found = sessions_.find(connection); found != sessions_.end()) left(found->second);
    };
    wire_.reply = [this](const FakeQuery& query) {
      receive(query);
      return FakeReply::held();
    };
  }
  ~FakeDatabase() = default;

  // The client has closed its end.
  virtual void left(Session& session) = 0;
  // A query that is to be carried out, with that fate.
  virtual void take(Session& session, const FakeQuery& query, Fate fate) = 0;

  [[nodiscard]] static std::string word_of(const Command& command) {
    return command.statement != nullptr ? command.statement->word : command.text.substr(0, command.text.find(' '));
  }
  [[nodiscard]] static std::string words_in(const FakeQuery& query) {
    std::string words;
    for (const Command& command : query.commands) words += (words.empty() ? "" : " ") + word_of(command);
    return words;
  }
  [[nodiscard]] std::vector<Session*> sessions_of(int process) {
    std::vector<Session*> sessions;
    for (auto& [number, session] : sessions_) {
      if (session.process == process) sessions.push_back(&session);
    }
    return sessions;
  }

  // The first query of the session has been carried out, or refused.
  void finish(Session& session, FakeReply reply) {
    const auto received = std::move(session.queue.front());
    session.queue.pop_front();
    if (session.silent || session.broken || session.client_left) return;
    if (received.fate == Fate::lose_answer) return break_off(session, reset, {});
    if (received.fate == Fate::hold) {
      held_.push_back({session.number, received.query.number, std::move(reply)});
      return;
    }
    deliver([this, number = session.number, query = received.query.number, reply = std::move(reply)] {
      wire_.answer(number, query, reply);
    });
    if (received.fate != Fate::expire) return;
    // When the answer has arrived.
    (void)executor_.schedule(saturating_add(executor_.now(), latency + std::chrono::milliseconds(10)),
                             lifetime_.guard([this, process = session.process] { expire(process); }));
  }
  void deliver(Executor::Task task) {
    if (latency.count() == 0) return task();
    (void)executor_.schedule(saturating_add(executor_.now(), latency), lifetime_.guard(std::move(task)));
  }
  // The session ends when its client knows, or with its lease. Where a server ends it while the client is stopped, no
  // promise but that of tokens survives.
  void break_off(Session& session, const std::string& why, const std::string& code) {
    session.silent = false;
    session.broken = true;
    session.terminated = !code.empty();
    wire_.break_connections(why, session.number, code);
  }
  void terminate(Session& session) { terminate(session, code_); }
  void terminate(Session& session, const std::string& code) { break_off(session, terminated_, code); }

  Executor& executor_;
  std::mt19937_64 dice_;
  FakeServer wire_;
  std::map<int, Session> sessions_;  // by their connections
  struct Held {
    int connection;
    std::uint64_t query;
    FakeReply reply;
  };
  std::vector<Held> held_;
  Lifetime lifetime_;

 private:
  static constexpr std::chrono::seconds unacknowledged{30};

  void receive(const FakeQuery& query) {
    const auto found = sessions_.find(query.connection);
    if (found == sessions_.end() || found->second.silent || found->second.broken) return;
    Session& session = found->second;
    const Fate what = fate ? fate(session.process, words_in(query)) : Fate::answer;
    if (what == Fate::lose_request) return break_off(session, reset, {});
    what == Fate::silence ? be_silent(session) : take(session, query, what);
  }
  // A message that is not acknowledged breaks the client's end of the connection in time.
  void be_silent(Session& session) {
    session.silent = true;
    const std::chrono::nanoseconds lease = session.purpose.session_lease;
    const TimePoint at = saturating_add(executor_.now(), lease.count() > 0 ? lease : unacknowledged);
    (void)executor_.schedule(at, lifetime_.guard([this, number = session.number] {
      wire_.break_connections("fake: connection timed out", number);
    }));
  }

  const std::string terminated_;
  const std::string code_;
};

}  // namespace dlock::sql
