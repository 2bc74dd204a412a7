// The answers of the strategies' statements, step by step: played on a real server, and on the fake one that stands for
// it in simulations.
//
// A scenario has a line for each step:
//   1 acquire x a ; release y b => yes token ; no     session 1 sends these requests in one query, and is answered that
//   1 lease.wait x 60000000 ...      it has to wait; this and the like are statements by their words, '' is empty
//   1 <= 1                           and is answered now
//   1 end                            of the connection
//   pass 300                         milliseconds
//   locks lease x                    by a transaction of another client, until it "unlocks"
// After name and owner, a request may have: lease=ms (60000), held (may_be_held), gave_up, seen=owner:version, 1/9
// (weight and permits), mark=ms, place=session, quiet (for the query). The answer to it is yes or no and, of an
// acquire, "token", which must be greater than all before, or "same" as the owner has already; owner and version that
// were seen; "permits" and the number that others use; "lease" for some of 60000 ms, "soon" for up to half a second. A
// statement answers the cells of its rows with "," between rows, or else the inserted token, or the number of affected
// rows, with "/" between statements. A cell is "-" for NULL, "token", "lease", or in the last column "s1" for
// session 1. Instead of all that, the code of a refusal.
#pragma once

#include <chrono>
#include <iosfwd>
#include <string>
#include <vector>

#include "backends/common/sql/connection.hpp"

namespace dlock::mysql {

struct Scenario {
  std::string name;
  std::string store;  // the table of the requests
  std::string steps;
};
void PrintTo(const Scenario& scenario, std::ostream* out);
[[nodiscard]] std::vector<Scenario> scenarios();

// Sessions on one server that has dlock's tables, without rows.
class StepSessions {
 public:
  StepSessions() = default;
  StepSessions(const StepSessions&) = delete;
  StepSessions& operator=(const StepSessions&) = delete;
  virtual ~StepSessions() = default;

  virtual void send(int session, std::vector<sql::Command> commands) = 0;
  // Until the server keeps what was sent waiting.
  virtual void await_wait(int session) = 0;
  struct Answer {
    sql::Outcome outcome;
    sql::Results results;
  };
  [[nodiscard]] virtual Answer answer(int session) = 0;
  [[nodiscard]] virtual std::uint64_t id(int session) = 0;
  virtual void end(int session) = 0;
  virtual void pass(std::chrono::milliseconds time) = 0;
  virtual void lock_row(const std::string& table, const std::string& name) = 0;
  virtual void unlock_row() = 0;
};

void play(const Scenario& scenario, StepSessions& sessions);

}  // namespace dlock::mysql
