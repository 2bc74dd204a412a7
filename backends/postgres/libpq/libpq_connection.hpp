// A Connection over libpq: dials, sends the preamble, and then has many queries in flight, in libpq's pipeline mode.
// Each query ends with a Sync of its own. Behind a pooler, one is in flight at a time. Nothing here blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>
#include <dlock/spi/result.hpp>

#include "backends/postgres/libpq/libpq_dialler.hpp"
#include "backends/postgres/libpq/libpq_handle.hpp"
#include "backends/postgres/options.hpp"
#include "backends/postgres/sql/common.hpp"
#include "backends/postgres/sql/preamble.hpp"

namespace dlock::postgres {

class LibpqConnection final : public Connection {
 public:
  LibpqConnection(Executor& executor, const Options& options, const Purpose& purpose, Listener& listener);

  void open(TimePoint deadline) override { dialler_.start(deadline); }
  [[nodiscard]] bool usable() const noexcept override { return ready_ && !lost_; }
  [[nodiscard]] const ServerInfo& server() const noexcept override { return server_; }
  void send(Query query) override;
  void receive() override;
  void break_off(const Failure& why) override;

 private:
  struct InFlight {
    Handler done = {};
    TimePoint sent = {};
    std::vector<const Statement*> statements = {};  // of each command; nullptr: it is only a text
    Results results = {};                           // of the commands that were answered
    std::optional<Outcome> refusal = {};
    const Statement* prepares = nullptr;
  };
  // Until the server has confirmed it, queries send the text of the statement.
  struct Prepared {
    std::string name;
    bool ready = false;
  };
  // A connection that is logged in. If the preamble finds that it is of no use, another one replaces it.
  struct Link {
    explicit Link(PgHandle connection) : handle(std::move(connection)) {}
    ~Link() { close(); }
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;
    void close();

    PgHandle handle;
    std::unique_ptr<Descriptor> descriptor;   // destroyed before the socket is closed
    std::deque<Query> unsent;                 // not yet handed to libpq
    std::deque<InFlight> in_flight;           // handed to libpq
    std::deque<const Statement*> unprepared;  // used, as texts
    std::unordered_map<const Statement*, Prepared> prepared;
    std::size_t names_given = 0;
    bool clogged = false;       // libpq has bytes that the network does not take
    bool taking_input = false;  // queries of that time go out together
    bool writing_posted = false;
    bool result_ends = false;                   // the end of a command's result follows
    bool answered = false;                      // a query, since the last answer_has_no_end()
    std::optional<std::uint64_t> counted_from;  // received bytes since when no query was answered
    std::optional<Failure> ended;               // the server announced it
    std::string sqlstate_of_end;
    Lifetime lifetime;
  };

  void dialled(PgHandle handle);
  void preamble_answered(std::size_t command, const Outcome& outcome, const Results& results);
  void greeted();

  void enqueue(Query query);
  [[nodiscard]] bool may_send() const;
  void write_out();
  [[nodiscard]] bool hand_over(Query query);
  [[nodiscard]] bool hand_over(const Command& command);
  [[nodiscard]] bool prepare(const Statement& statement);
  void flush();

  void wait_readable();
  void take_input();
  [[nodiscard]] bool take_results();
  void take_result(const PGresult& result);
  void take_refusal(const PGresult& result, InFlight& entry);
  void finish_query();
  [[nodiscard]] bool answer_has_no_end();

  void note_end(const PGresult& message);
  void give_up(Failure why);
  void give_up_soon();
  [[nodiscard]] Failure unavailable(const std::string& why) const;
  [[nodiscard]] Failure last_error() const;

  Executor& executor_;
  const Options& options_;
  const Purpose purpose_;
  Listener& listener_;
  ServerInfo server_;
  bool ready_ = false;
  bool lost_ = false;
  Timer greeting_timer_;
  std::optional<Preamble> preamble_;  // until it is answered
  Dialler dialler_;
  std::unique_ptr<Link> link_;  // from the login until the connection is lost
  Lifetime lifetime_;
};

[[nodiscard]] OpenConnection libpq_connections();

}  // namespace dlock::postgres
