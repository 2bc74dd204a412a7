// The real Connection, over libpq: dials, says the preamble, and then hands queries on to the pipeline.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/postgres/libpq/libpq_dialler.hpp"
#include "backends/postgres/libpq/libpq_pipeline.hpp"
#include "backends/postgres/options.hpp"
#include "backends/postgres/sql/connection.hpp"
#include "backends/postgres/sql/preamble.hpp"

namespace dlock::postgres {

class LibpqConnection final : public Connection, private Dialler::Events, private Pipeline::Events {
 public:
  LibpqConnection(Executor& executor, const Options& options, const Purpose& purpose, Listener& listener);

  void open(TimePoint deadline) override { dialler_.start(deadline); }
  [[nodiscard]] bool usable() const noexcept override { return ready_ && !lost_ && pipeline_ && !pipeline_->broken(); }
  [[nodiscard]] const ServerInfo& server() const noexcept override { return server_; }
  void send(Query query) override;
  void receive() override;
  void break_off(const Failure& why) override;

 private:
  void dialled(PgHandle connection) override;
  void dialling_failed(const Failure& why) override;
  void pipeline_broken(const Failure& why) override;
  void pipeline_notified(const std::string& channel, const std::string& payload) override;

  void say_preamble();
  void preamble_answered(std::size_t command, const Outcome& outcome, const Results& results);
  void greeted();
  void refuse(Failure why);
  void lose(const Failure& why);

  Executor& executor_;
  const Options& options_;
  const Purpose purpose_;
  Listener& listener_;
  ServerInfo server_;
  bool ready_ = false;
  bool lost_ = false;
  Timer greeting_timer_;
  std::optional<Preamble> preamble_;
  Dialler dialler_;
  std::unique_ptr<Pipeline> pipeline_;
  Lifetime lifetime_;
};

// Connections of the real kind.
[[nodiscard]] ConnectionFactory libpq_connections();

}  // namespace dlock::postgres
