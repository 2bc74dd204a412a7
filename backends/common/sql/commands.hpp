// The session for statements that wait for no lock, shared by locks of the row strategies, questions and
// administration.
#pragma once

#include <functional>
#include <list>
#include <optional>
#include <string>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/common/connection_news.hpp"
#include "backends/common/sql/session.hpp"

namespace dlock::sql {

// The reaction of a query to a database without tables of dlock.
enum class MissingSchema {
  make,    // makes them and continues
  refuse,  // fails
};

// Makes the missing tables, and answers at the latest at the deadline, never inside the call. nullopt: they are there.
using SetUp = std::function<void(TimePoint deadline, std::function<void(std::optional<Failure> why_not)> done)>;

// In tasks only.
class Commands final : private Session::User {
 public:
  // All outlive it.
  Commands(Executor& executor, const Dialling& dialling, SetUp set_up, common::ConnectionObserver& observer);
  ~Commands();

  [[nodiscard]] Executor& executor() const noexcept { return executor_; }
  [[nodiscard]] const Dialect& dialect() const noexcept { return dialling_.dialect; }
  // About the last connection that was ready.
  [[nodiscard]] const ServerInfo& server() const noexcept { return session_.server(); }
  [[nodiscard]] Session& session() noexcept { return session_; }
  // The deadline of a query that is sent now.
  [[nodiscard]] TimePoint answer_by() const noexcept;
  // The failure of a query without an answer.
  [[nodiscard]] Failure no_answer() const;

  // Calls the handler of the query once, never inside the call, at the latest at the deadline. Until then, tries again
  // if the server rolled the query back and may accept it later. The failure of an outcome is the dialect's. patient:
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
  const Dialling& dialling_;
  const SetUp set_up_;
  common::ConnectionObserver& observer_;
  Session session_;
  std::string last_refusal_;  // of a query that was tried again; empty once a query succeeded
  Runs runs_;
  Lifetime lifetime_;
};

}  // namespace dlock::sql
