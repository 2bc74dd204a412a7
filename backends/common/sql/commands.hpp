// The session for statements that wait for no lock, shared by locks of the row strategies, questions and
// administration.
#pragma once

#include <list>
#include <string>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/common/connection_news.hpp"
#include "backends/common/sql/session.hpp"
#include "backends/postgres/options.hpp"
#include "backends/postgres/schema/schema.hpp"

namespace dlock::postgres {

// The reaction of a query to a database without tables of dlock.
enum class MissingSchema {
  make,    // makes them and continues
  refuse,  // fails
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
  // About the last connection that was ready.
  [[nodiscard]] const ServerInfo& server() const noexcept { return session_.server(); }
  [[nodiscard]] Session& session() noexcept { return session_; }
  // The deadline of a query that is sent now.
  [[nodiscard]] TimePoint answer_by() const noexcept;
  // The failure of a query without an answer.
  [[nodiscard]] Failure no_answer() const;

  // Calls the handler of the query once, never inside the call, at the latest at the deadline. Until then, tries again
  // if the server rolled the query back and may accept it later. The failure of an outcome is failure_of() it. patient:
  // as that of a Request.
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
  std::string last_refusal_;  // of a query that was tried again; empty once a query succeeded
  Runs runs_;
  Lifetime lifetime_;
};

}  // namespace dlock::postgres
