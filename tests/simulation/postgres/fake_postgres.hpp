// A PostgreSQL server in memory, behind the connections of clients (FakeServer): as much of it as dlock asks for, and
// what goes wrong. It tells statements by their words.
//
// Sessions carry out one query after the other. They have the tables of the row strategies, advisory locks, locks of
// rows with transactions around them, waits with an end, and notifications. A session that holds something waits for
// nothing, and no client has more connections than it may: the fake reports a failure.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "fake_connection.hpp"
#include "fake_lock_table.hpp"
#include "tests/simulation/service.hpp"

namespace dlock::postgres {

class FakePostgres {
 public:
  using Fate = simulation::Fate;

  // For its timers.
  explicit FakePostgres(Executor& executor, std::uint64_t seed = 1);

  [[nodiscard]] ConnectionFactory connections(int process) { return wire_.connections(process); }
  // How it meets those who connect.
  [[nodiscard]] FakeServer& wire() { return wire_; }

  // --- What goes wrong: see simulation::Service ---
  std::function<Fate(int process, std::string_view words)> fate;
  std::function<std::chrono::nanoseconds()> delay = [] { return std::chrono::milliseconds(100); };
  std::chrono::nanoseconds latency{};  // of what it sends
  // The SQLSTATE with which it refuses a command; empty: none.
  std::function<std::string(int process, std::string_view word, const Command&)> refusal;
  // Changes the answer to a command that was carried out.
  std::function<void(int process, std::string_view word, Rows&)> falsify;
  void cut(int process);
  void set_reachable(int process, bool reachable) {
    reachable ? (void)wire_.unreachable.erase(process) : (void)wire_.unreachable.insert(process);
  }
  void expire(int process);  // pg_terminate_backend()
  void release_held();
  void bury(int process) { wire_.bury(process); }

  // --- What it has ---
  bool has_schema = true;
  bool may_create_schema = true;
  std::optional<std::string> version = "1";                   // in the table "meta"
  std::function<void(Rows& rights, Rows& tables)> catalogue;  // changes what is said of schema and tables
  std::optional<std::string> waits_for_snapshots;  // the transaction that waits for those of all others to end
  [[nodiscard]] FakeLockTable::Row& row(const std::string& table_name, const std::string& name) {
    return table(table_name)->rows.at(name);
  }
  // Processes: those that hold, and those that wait. Of a table, only holders.
  [[nodiscard]] std::vector<int> holders_of_rows(const std::string& table, const std::string& name);
  [[nodiscard]] std::vector<int> sessions_of_key(const std::string& key, bool waiters = true) const;
  [[nodiscard]] std::vector<int> sessions_of_row(const std::string& name, bool waiters = true) const;

 private:
  struct Locks {  // on an advisory key
    int exclusive = 0;
    int shared = 0;
  };
  // A query that was received.
  struct Received {
    FakeQuery query;
    Fate fate = Fate::answer;
    std::size_t next = 0;  // command
    Results results = {};
    bool waits = false;            // for others, or because it is late
    std::string end_of_wait = {};  // the SQLSTATE of that
    bool too_long = false;         // it waited
    bool was_late = false;
    std::vector<FakeLockTable::Row*> locked = {};  // while it is
  };
  struct Session {
    Session(int of_number, int of_process, Purpose of_purpose, Executor& executor)
        : number(of_number), process(of_process), purpose(std::move(of_purpose)), timer(executor) {}
    const int number;
    const int process;
    const Purpose purpose;
    std::deque<Received> queue = {};
    bool silent = false;       // nothing gets through any more
    bool broken = false;       // nor here, and the client learns of that
    bool terminated = false;   // it ends with that; else with what it has received
    bool client_left = false;  // that is
    bool unknown = false;      // an unlock was refused, so the client cannot know what it has
    bool open = false;         // a transaction
    bool failed = false;       // and that has to be rolled back
    bool makes_schema = false;
    std::set<std::string> rows = {};                      // locked by the transaction
    std::string holder = {};                              // of the last of them
    std::map<std::string, std::int64_t> new_tokens = {};  // not committed
    std::chrono::milliseconds patience{};                 // of its statements; 0: for ever
    std::vector<std::pair<std::string, std::string>> notifications = {};
    std::map<std::string, Locks> keys = {};
    std::set<std::string> channels = {};
    Timer timer;
  };
  // What became of a command: rows, an error, or it has to wait for so long, and then is an error.
  struct Step {
    Rows rows = {};
    std::string sqlstate = {};
    std::optional<std::chrono::nanoseconds> waits = std::nullopt;
  };
  using Params = std::vector<std::string>;
  struct Fence {
    std::int64_t token = 0;
    std::string key = {};  // of an advisory lock; with its holder, and the session which was granted it last
    std::string holder = {};
    int session = 0;
  };

  void left(int connection);
  void receive(const FakeQuery& query);
  void be_silent(Session& session);
  void pump(Session& session);
  // False: it waits.
  [[nodiscard]] bool carry_out(Session& session, Received& received);
  [[nodiscard]] bool is_late(Session& session, Received& received);
  [[nodiscard]] bool refuse(Session& session, Received& received);
  void wait(Session& session, std::chrono::nanoseconds time);
  void waited(Session& session, Received& received);
  void fail(Session& session, const std::string& sqlstate, std::size_t command);
  void finish(Session& session, FakeReply reply);
  void deliver(Executor::Task task);
  void time_is_over(int number);
  void end(int number);
  void break_off(Session& session, const std::string& why, const std::string& sqlstate = {});
  void retry_soon();
  [[nodiscard]] std::vector<Session*> sessions_of(int process);

  [[nodiscard]] Step execute(Session& session, const Command& command);
  [[nodiscard]] Step execute_text(Session& session, const std::string& text);
  [[nodiscard]] std::optional<Step> execute_plain(Session& session, std::string_view word, const Params& params);
  [[nodiscard]] Step execute_on_rows(Session& session, const Command& command);
  // Of locks that belong to sessions.
  [[nodiscard]] Fence* fence_of(std::string_view table, const std::string& row);
  [[nodiscard]] std::optional<Step> answer_question(std::string_view table, std::string_view what,
                                                    const Params& params);
  void look(std::string_view table, const std::string& name, Rows& answer);
  [[nodiscard]] Rows break_lock(std::string_view table, const std::string& what, const std::string& sessions);
  [[nodiscard]] Rows forget(std::string_view table, const std::string& name, std::int64_t age, std::size_t at_most);
  [[nodiscard]] Rows look_at_schema(const Session& session, bool rights) const;
  [[nodiscard]] Step execute_advisory(Session& session, std::string_view word, const Params& params);
  [[nodiscard]] Step lock_key(Session& session, std::string_view word, bool shared, const Params& params);
  [[nodiscard]] std::string next_fence(const Session& session, std::string_view table, const std::string& row,
                                       const std::string& key, const std::string& holder, std::int64_t many = 1);
  [[nodiscard]] Step execute_row_lock(Session& session, std::string_view word, const Params& params);
  [[nodiscard]] FakeLockTable* table(std::string_view word);
  [[nodiscard]] bool key_is_free(const Session& session, const std::string& key, bool shared) const;
  [[nodiscard]] bool row_is_free(const Session& session, const std::string& name) const;
  void take_key(Session& session, const std::string& key, bool shared);
  [[nodiscard]] bool free_key(Session& session, const std::string& key, bool shared);
  [[nodiscard]] std::int64_t next_token(std::int64_t last);
  void commit(Session& session);
  void roll_back(Session& session);
  void must_hold_nothing(const Session& session, std::string_view word) const;
  // Sessions that wait with such a command for that, in order, as far as they came before a session.
  struct Waiter {
    const Session* session;
    bool shared;
  };
  [[nodiscard]] std::vector<Waiter> waiters_for(std::string_view word, const std::string& what,
                                                const Session* before = nullptr) const;
  [[nodiscard]] std::vector<int> sessions_of(std::string_view word, const std::string& what,
                                             const std::function<bool(const Session&)>& holds, bool waiters) const;

  Executor& executor_;
  std::mt19937_64 dice_;
  FakeServer wire_;
  std::map<std::string, FakeLockTable, std::less<>> tables_;
  std::map<std::string, int> processes_;         // of owners
  std::map<std::string, Statement> statements_;  // by their words; those of a client go with it
  std::map<std::string, Fence> fences_;          // by table and row: "fence/a", "row_lock/a"
  std::int64_t clock_ = 0;                       // in microseconds, when a token was made last
  std::map<int, Session> sessions_;              // by their connections
  std::list<int> waiting_;                       // in order
  struct Held {
    int connection;
    std::uint64_t query;
    FakeReply reply;
  };
  std::vector<Held> held_;
  Session* current_ = nullptr;  // sends the notifications
  bool retrying_ = false;
  Lifetime lifetime_;
};

}  // namespace dlock::postgres
