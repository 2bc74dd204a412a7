// The connection for statements that wait for no lock, shared by everything that asks the server: locks of the row
// strategies, questions, administration.
#pragma once

#include <list>
#include <string>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/common/connection_news.hpp"
#include "backends/postgres/options.hpp"
#include "backends/postgres/schema/schema.hpp"
#include "backends/postgres/sessions/session.hpp"

namespace dlock::postgres {

// What a query does in a database where dlock has no tables yet.
enum class MissingSchema {
  make,    // makes them and goes on
  refuse,  // leaves it at that: nothing can be there to ask about
};

// In tasks only.
class Commands final : private Session::User {
 public:
  // All outlive it.
  Commands(Executor& executor, const Options& options, const Dialling& dialling, Schema& schema,
           common::ConnectionObserver& observer);
  ~Commands();

  [[nodiscard]] Executor& executor() const noexcept { return executor_; }
  [[nodiscard]] const Options& options() const noexcept { return options_; }
  // Of the last connection that stood.
  [[nodiscard]] const ServerInfo& server() const noexcept { return session_.server(); }
  [[nodiscard]] Session& session() noexcept { return session_; }
  // When an answer is due that is asked for now.
  [[nodiscard]] TimePoint answer_by() const noexcept;
  // What to say where none came.
  [[nodiscard]] Failure no_answer() const;

  // Carries out a query; its handler is called once, never inside the call, at the latest at the deadline. What the
  // server rolled back and may be tried again is tried again until then. The failure of an outcome is failure_of() it.
  // patient: as Request's.
  void run(Query query, TimePoint deadline, MissingSchema missing = MissingSchema::make, bool patient = false);

 private:
  struct Run;
  using Runs = std::list<Run>;

  void attempt(Runs::iterator run);
  void answered(Runs::iterator run, const Outcome& outcome, const Results& results);
  void fail(Runs::iterator run, Outcome outcome, Failure why);
  void finish(Runs::iterator run, const Outcome& outcome, const Results& results);
  [[nodiscard]] std::string with_last_refusal(std::string text) const;

  void session_ready() override {}
  void session_answered() override { observer_.connected(); }
  void session_down(const Failure& why, bool was_ready) override;

  Executor& executor_;
  const Options& options_;
  Schema& schema_;
  common::ConnectionObserver& observer_;
  Session session_;
  std::string last_refusal_;  // of what was to be tried again; empty once something was carried out
  Runs runs_;
  Lifetime lifetime_;
};

}  // namespace dlock::postgres
