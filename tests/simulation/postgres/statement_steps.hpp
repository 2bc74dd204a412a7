// The answers of the strategies' statements, step by step: played on a real server, and on the fake one that stands
// for it in simulations.
//
// A scenario has a line for each step:
//   1 lease.acquire x a h 60000 => a token      session 1 says this, '' for an empty parameter, and is answered that
//   1 begin ; row_lock.try_lock x h => ...      in one query
//   2 fence.lock_slice 7 x h 60000 ...          it has to wait
//   2 <= token pid                              and is answered now
//   3 hears me x                                a notification, its tab as a blank
//   2 end                                       of the connection
//   pass 300                                    milliseconds
//   locks lease x                               by a transaction of another client, until it "unlocks"
// An answer has the cells of each row, without those at the end that are empty, rows in order with "," between them and
// commands with "/". A cell is "-" for NULL, "token", "pid" of the session, "lease" for some of 60000 ms, "name" of the
// application; instead of all that, the SQLSTATE of a refusal.
#pragma once

#include <chrono>
#include <iosfwd>
#include <string>
#include <vector>

#include "backends/postgres/sql/common.hpp"

namespace dlock::postgres {

struct Scenario {
  std::string name;
  std::string steps;
};
void PrintTo(const Scenario& scenario, std::ostream* out);
[[nodiscard]] std::vector<Scenario> scenarios();

// Sessions on one server.
class StepSessions {
 public:
  StepSessions() = default;
  StepSessions(const StepSessions&) = delete;
  StepSessions& operator=(const StepSessions&) = delete;
  virtual ~StepSessions() = default;

  virtual void send(int session, std::vector<Command> commands) = 0;
  // Until the server keeps what was sent waiting.
  virtual void await_wait(int session) = 0;
  struct Answer {
    Outcome outcome;
    Results results;
  };
  [[nodiscard]] virtual Answer answer(int session) = 0;
  [[nodiscard]] virtual std::string notification(int session) = 0;
  [[nodiscard]] virtual int pid(int session) = 0;
  virtual void end(int session) = 0;
  virtual void pass(std::chrono::milliseconds time) = 0;
  virtual void lock_row(const std::string& table, const std::string& name) = 0;
  virtual void unlock_row() = 0;
};

void play(const Scenario& scenario, StepSessions& sessions);

}  // namespace dlock::postgres
