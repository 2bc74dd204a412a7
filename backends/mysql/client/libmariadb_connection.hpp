// A Connection over libmariadb. One query is on the wire at a time, because the library reads no answer before it has
// sent a query. Nothing here blocks.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/common/sql/connection.hpp"
#include "backends/mysql/client/dialler.hpp"
#include "backends/mysql/client/exchange.hpp"
#include "backends/mysql/client/query_text.hpp"
#include "backends/mysql/options.hpp"

namespace dlock::mysql {

class LibmariadbConnection final : public sql::Connection {
 public:
  LibmariadbConnection(Executor& executor, const Options& options, const sql::Purpose& purpose, Listener& listener);

  void open(TimePoint deadline) override { dialler_.start(deadline); }
  [[nodiscard]] bool usable() const noexcept override { return link_ != nullptr; }
  [[nodiscard]] const sql::ServerInfo& server() const noexcept override { return server_; }
  void send(sql::Query query) override;
  void receive() override;
  void break_off(const Failure& why) override;

 private:
  struct Pending {
    sql::Query query;
    QueryText text = {};  // once it is on the wire, and when it went there
    TimePoint sent = {};
    std::optional<sql::Outcome> refusal = {};  // the ROLLBACK behind it is on the wire, or it cannot be sent
  };
  struct Link {
    explicit Link(Session session);
    ~Link() { close(); }
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;
    void close();

    MysqlHandle connection;
    util::UniqueFd socket;
    Exchange exchange;
    Prepared prepared = {};
    bool prepares;
    std::unique_ptr<Descriptor> descriptor;  // destroyed before the socket is closed
    std::deque<Pending> unsent;
    std::optional<Pending> on_wire;
    int waits = 0;                          // the events for which the exchange, or an idle connection, waits
    int armed = 0;                          // those for which the descriptor waits
    bool in_handler = false;                // queries of that time go out behind it
    std::optional<std::uint64_t> received;  // bytes, soon after the exchange began
    Lifetime lifetime;
  };

  void dialled(Result<Session> result);
  [[nodiscard]] int start_next();
  [[nodiscard]] int start_query();
  [[nodiscard]] int start(std::string text, std::size_t statements);
  void continue_after(int events);
  [[nodiscard]] bool answer_has_no_end();
  [[nodiscard]] std::optional<int> finish_exchange();
  void finish_query(const sql::Outcome& outcome, const sql::Results& results);

  void watch(int events);
  void arm(int event, Descriptor::Interest interest);
  void ready(int events);
  void check_idle();
  [[nodiscard]] Failure unavailable(const std::string& why) const;

  Executor& executor_;
  const Options& options_;
  Listener& listener_;
  sql::ServerInfo server_;
  bool lost_ = false;
  std::string code_of_end_;  // the server's, of the error with which it ended the session
  Dialler dialler_;
  std::unique_ptr<Link> link_;  // while it is usable
  Lifetime lifetime_;
};

[[nodiscard]] OpenConnection libmariadb_connections();

}  // namespace dlock::mysql
