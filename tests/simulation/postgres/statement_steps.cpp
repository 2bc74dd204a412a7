#include "statement_steps.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "tests/unit/postgres/all_statements.hpp"

namespace dlock::postgres {

namespace {

constexpr const char* one = R"({h} {60000} {""} {0} {0})";

// $T stands for both tables of plain locks, $ONE for the rest of an acquire of one lock by an owner that saw nothing.
constexpr std::string_view rows_of_one_holder = R"(
  1 $T.acquire {x} {a} $ONE '' => a token
  1 $T.acquire {x} {a} $ONE '' => a token
  2 $T.acquire {x,y,z} {b,c,d} {h,h,h} {60000,60000,60000} {"","",""} {0,0,0} {0,0,0} '' => b - $SEEN lease, c token, d token
  2 $T.acquire {v,v,w,w} {e,f,g,h} {h,h,h,h} {60000,60000,60000,60000} {"","","",""} {0,0,0,0} {0,0,0,1} '' => e token, f - $SEEN_E lease, g - $SEEN_H lease, h token
  2 $T.renew {x,y,w} {b,c,d} {60000,60000,60000} => c t
  2 $T.release {x} {b} {0} '' =>
  2 $T.release {x,y} {b,c} {0,1} '' => c t
  2 $T.release {y} {c} {1} '' =>
  1 $T.renew {x} {a} {60000} => a t
  1 $T.release {x} {a} {0} '' => a t
  1 $T.renew {x} {a} {60000} =>
  2 $T.acquire {x} {b} $ONE '' => b token
  1 $T.acquire_one {x} a h 60000 '' 0 0 '' => a token
  2 $T.acquire_one {x} b h 60000 '' 0 1 '' => b - $SEEN_A lease
  1 $T.acquire_one {x} a h 60000 '' 0 1 '' => a token
  1 $T.renew_one {x} a 60000 => a t
  1 $T.renew_one {x} b 60000 =>
  1 $T.release_one {x} b 1 '' =>
  1 $T.release_one {x} a 0 '' => a t
)";

constexpr std::string_view rows_locked_by_others = R"(
  1 $T.acquire {x} {a} $ONE '' => a token
  locks $T x
  2 $T.acquire {x} {a} $ONE '' =>
  2 $T.acquire {x} {b} $ONE '' => b - $SEEN_A lease
  2 $T.renew {x} {a} {60000} => a f
  2 $T.release {x} {a} {0} '' => a f
  2 $T.release {x} {b} {0} '' =>
  2 $T.release {x} {b} {1} '' => b f
  2 $T.mark {x} 60000 30000 => x
  unlocks
  2 $T.release {x} {b} {1} '' =>
  2 $T.release {x} {a} {0} '' => a t
)";

constexpr std::string_view notifications = R"(
  3 listen c =>
  1 $T.acquire {x} {a} $ONE '' => a token
  1 $T.release {x} {a} {0} c => a t
  2 $T.mark {x,y} 60000 30000 => x f
  1 $T.acquire {x} {a} $ONE '' => a token
  2 $T.mark {x} 60000 30000 => x t
  4 $T.mark {x} 60000 30000 => x t
  1 $T.release {x} {a} {0} '' => a t
  1 $T.acquire {x} {a} $ONE '' => a token
  1 $T.release {x} {a} {0} c => a t
  3 hears x
)";

constexpr std::string_view election = R"(
  3 listen c =>
  1 $T_elect.acquire {x} {a} $ONE c => a token
  2 $T_elect.mark {x} 60000 30000 => x t
  1 $T_elect.release {x} {a} {0} '' => a t
  2 $T_elect.mark {x} 60000 30000 => x t
  2 $T_elect.acquire {x} {b} $ONE c => b token
  3 hears x
)";

constexpr std::string_view expiry = R"(
  1 lease.acquire {x} {a} {h} {100} {""} {0} {0} '' => a token
  pass 150
  1 lease.renew {x} {a} {60000} =>
  2 lease.acquire {x} {b} $ONE '' => b token
  1 lease.release {x} {a} {0} '' =>
  1 lease.mark {x} 60000 30000 => x t
)";

constexpr std::string_view takeover = R"(
  1 optimistic.acquire {x} {a} $ONE '' => a token
  2 optimistic.acquire {x} {b} {h} {60000} {a} {7} {0} '' => b - a 1 lease
  1 optimistic.renew {x} {a} {60000} => a t
  2 optimistic.acquire {x} {b} {h} {60000} {a} {1} {0} '' => b - a 2 lease
  2 optimistic.acquire {x} {b} {h} {60000} {a} {2} {0} '' => b token
  1 optimistic.renew {x} {a} {60000} =>
)";

// names, owners, what, leases, holders, weights, permits, marks, channel
constexpr std::string_view semaphore = R"(
  1 lease_sem.change {x,x,x,y} {a,b,c,d} {2,2,2,2} {60000,60000,60000,60000} {h,h,h,h} {1,1,1,1} {2,2,2,1} {0,0,0,0} '' => 1 t token, 2 t token, 3 f - - lease, 4 t token
  2 lease_sem.change {x,x,x,x,y} {a,b,b,c,e} {0,1,2,2,1} {60000,60000,60000,60000,60000} {h,h,h,h,h} {1,1,1,1,1} {2,2,2,2,1} {0,0,0,0,0} '' => 1 t, 2 t token, 3 t token, 4 t token, 5 f
  1 lease_sem.change {x,x,z} {a,a,a} {0,1,0} {60000,60000,60000} {h,h,h} {1,1,1} {2,2,2} {0,0,0} '' => 1 f, 2 f, 3 f
  1 lease_sem.change {x,x} {d,d} {2,2} {60000,60000} {h,h} {1,1} {3,2} {0,0} '' => 1 f - 2 lease, 2 f - - lease
  1 lease_sem.change {x,x,x,x} {b,c,d,e} {0,0,2,2} {60000,60000,60000,60000} {h,h,h,h} {1,1,1,1} {2,2,3,2} {0,0,0,0} '' => 1 t, 2 t, 3 t token, 4 f - 3 lease
  1 lease_sem.change {u,u} {a,a} {2,0} {60000,60000} {h,h} {1,1} {2,2} {0,0} '' => 1 f - - 0, 2 f
  1 lease_sem.change {u} {b} {2} {60000} {h} {1} {1} {0} '' => 1 t token
  1 lease_sem.change {v} {a} {2} {100} {h} {1} {1} {0} '' => 1 t token
  pass 150
  1 lease_sem.change {v,v} {a,b} {1,2} {60000,60000} {h,h} {1,1} {1,1} {0,0} '' => 1 f, 2 t token
)";

constexpr std::string_view read_write = R"(
  3 listen c =>
  1 lease_rw.change {x,x,x} {a,w,b} {2,2,2} {60000,60000,60000} {h,h,h} {1,9,1} {9,9,9} {0,60000,0} c => 1 t token, 2 f - - lease, 3 t token
  2 lease_rw.change {x} {c} {2} {60000} {h} {1} {9} {0} c => 1 f - - lease
  2 lease_rw.change {x} {v} {2} {60000} {h} {9} {9} {60000} c => 1 f - - lease
  2 lease_rw.mark {x} 60000 30000 => x t
  2 lease_rw.change {x} {w} {0} {60000} {h} {9} {9} {0} c => 1 f
  3 hears x
  2 lease_rw.change {x} {c} {2} {60000} {h} {1} {9} {0} c => 1 t token
  2 lease_rw.change {x,x,x} {a,b,c} {0,0,0} {60000,60000,60000} {h,h,h} {1,1,1} {9,9,9} {0,0,0} '' => 1 t, 2 t, 3 t
  2 lease_rw.change {x,x,x} {w,a,v} {2,2,2} {60000,60000,60000} {h,h,h} {9,1,9} {9,9,9} {60000,0,0} '' => 1 t token, 2 f - - lease, 3 f - - lease
  2 lease_rw.change {x,x} {w,a} {0,2} {60000,60000} {h,h} {9,1} {9,9} {0,0} '' => 1 t, 2 t token
)";

constexpr std::string_view row_of_several_locked = R"(
  1 lease_sem.change {x} {a} {2} {60000} {h} {1} {2} {0} '' => 1 t token
  locks lease_sem x
  2 lease_sem.change {x} {b} {2} {60000} {h} {1} {2} {0} '' => 55P03
  2 lease_sem.change {x} {c} {-1} {60000} {h} {1} {2} {0} '' => 55P03
  2 lease_sem.change {x} {b} {2} {60000} {h} {1} {3} {0} '' => 1 f - 2 lease
  2 lease_sem.change {x} {b} {0} {60000} {h} {1} {2} {0} '' => 1 f
  unlocks
  2 lease_sem.change {x} {b} {2} {60000} {h} {1} {2} {0} '' => 1 t token
)";

constexpr std::string_view advisory = R"(
  1 fence.try_lock 7 x h => token pid
  1 fence.proof 9 => pid t t
  2 fence.proof 7 => pid - f
  2 fence.try_lock 7 x h =>
  2 fence.try_many {7,8} {x,y} {h,h} => y token pid
  2 fence.unlock 7 => f
  2 fence.unlock_many {7,8} => f, t
  2 fence.lock_slice 7 x h 100 => 55P03
  2 fence.lock_slice 7 x h 60000 ...
  3 fence.lock_slice 7 x h 60000 ...
  1 fence.unlock 7 => t
  2 <= token pid
  4 fence.try_lock 7 x h =>
  2 end
  3 <= token pid
  3 fence.unlock 7 => t
  3 fence.unlock 7 => f
  4 fence.try_lock 7 x h => token pid
)";

constexpr std::string_view shared_advisory = R"(
  1 fence_rw.try_lock_shared 7 x h 2 => token pid
  2 fence_rw.try_lock_shared 7 x h 1 => token pid
  3 fence_rw.try_lock 7 x h =>
  1 fence_rw.join_shared 7 x h 1 => token pid
  3 fence_rw.lock_slice 7 x h 60000 ...
  1 fence_rw.join_shared 7 x h 1 =>
  4 fence_rw.try_lock_shared 7 x h 1 =>
  4 fence_rw.lock_slice_shared 7 x h 60000 ...
  5 fence_rw.lock_slice_shared 7 x h 60000 ...
  1 fence_rw.unlock 7 => f
  1 fence_rw.unlock_many_shared {7} => t
  2 fence_rw.unlock_shared 7 => t
  3 <= token pid
  3 fence_rw.unlock 7 => t
  4 <= token pid
  5 <= token pid
)";

constexpr std::string_view for_update = R"(
  1 begin ; row_lock.try_lock x h => /
  1 rollback =>
  1 row_lock.ensure x =>
  1 row_lock.ensure x =>
  1 begin ; row_lock.try_lock x h ; heartbeat => / token name 0 / read committed
  2 begin ; row_lock.try_lock x h => 55P03
  2 row_lock.ensure y => 25P02
  2 rollback =>
  2 begin ; set_patience 100 ; row_lock.lock x h => 57014
  2 rollback ; begin ; set_patience 70001 ; row_lock.lock x h ; heartbeat ...
  3 begin ; set_patience 70001 ; row_lock.lock x h ; heartbeat ...
  1 commit =>
  2 <= / / 70001ms / token name 0 / read committed
  2 end
  3 <= / 70001ms / token name 0 / read committed
  3 row_lock.ensure y ; commit => /
  1 begin ; row_lock.try_lock y h ; commit => / token name 0 /
)";

constexpr std::string_view questions = R"(
  1 $T.inspect x =>
  1 $T.acquire {x} {a} $ONE '' => a token
  2 $T.inspect x => x t h token$LEFT
  2 $T.list 10 => x t h token$LEFT
  2 $T.forget x 0 10 =>
  2 $T.break_lock x c => t
  2 $T.break_lock x c =>
  1 $T.renew {x} {a} {60000} =>
  2 $T.inspect x => x f  token
  2 $T.forget '' 3600000000 10 =>
  2 $T.forget '' 0 10 => x
  2 $T.list 10 =>
)";

constexpr std::string_view questions_about_several = R"(
  1 lease_sem.change {x} {a} {2} {60000} {h} {1} {2} {0} '' => 1 t token
  2 lease_sem.inspect x => x t h token lease - 2 1 token
  2 lease_sem.break_lock x c => t
  2 lease_sem.inspect x => x f  token 0 - 2
  2 lease_sem.forget x 0 10 => x
  1 lease_rw.change {x} {w} {2} {60000} {h} {9} {9} {0} '' => 1 t token
  2 lease_rw.list 10 => x t h token lease - 9 9 token
)";

constexpr std::string_view questions_about_sessions = R"(
  1 fence.inspect 7 x => x f  0 - 0
  1 fence.try_lock 7 x h => token pid
  2 fence.lock_slice 7 x h 60000 ...
  3 fence.inspect 7 x => x t h token - 1
  3 fence.list 10 => x t h token - 1
  3 fence.forget x 0 10 =>
  3 fence.break_lock 8 {} =>
  2 end
  pass 700
  1 fence.unlock 7 => t
  3 fence.inspect 7 x => x f  token - 0
  3 fence.forget '' 0 10 => x
  3 row_lock.inspect x =>
  3 row_lock.ensure x =>
  3 row_lock.list 10 => x f  0 - 0
  3 row_lock.break_lock x {} =>
  3 row_lock.forget '' 0 10 =>
  3 row_lock.forget x 0 10 => x
)";

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

std::map<std::string, Statement> statements_by_word() {
  std::map<std::string, Statement> all;
  for (const auto& [word, sql] : all_statements("dlock", Durability::sync)) {
    all.try_emplace(word, Statement{.sql = sql, .word = word});
  }
  return all;
}

// "begin ; row_lock.try_lock x h"
std::vector<Command> commands_in(const std::string& text) {
  static const auto statements = statements_by_word();
  std::vector<Command> commands;
  std::istringstream words(text);
  bool begins = true;
  for (std::string word; words >> word && word != "=>" && word != "...";) {
    if (word == ";") {
      begins = true;
    } else if (!std::exchange(begins, false)) {
      commands.back().params.emplace_back(word == "''" ? "" : word);
    } else if (word == "listen") {
      words >> word;
      commands.push_back({.text = "LISTEN \"" + word + "\""});
    } else {
      commands.push_back({.statement = &statements.at(word)});
    }
  }
  return commands;
}

std::string cell_text(const std::optional<std::string>& cell, const std::string& pid) {
  constexpr std::size_t digits_of_token = 11;
  if (!cell) return "-";
  if (*cell == pid) return "pid";
  if (cell->starts_with("dlock#")) return "name";
  const bool number =
      !cell->empty() && std::all_of(cell->begin(), cell->end(), [](char c) { return c >= '0' && c <= '9'; });
  if (number && cell->size() >= digits_of_token) return "token";
  if (number && cell->size() == 5 && *cell <= "60000" && *cell > "40000") return "lease";
  return *cell;
}

std::string text_of(const StepSessions::Answer& answer, int backend_pid) {
  const Outcome& outcome = answer.outcome;
  if (outcome.problem != Problem::none)
    return outcome.server_code.empty() ? outcome.failure.detail : outcome.server_code;
  const std::string pid = std::to_string(backend_pid);
  std::string text;
  for (std::size_t i = 0; i < answer.results.size(); ++i) {
    std::vector<std::string> rows;
    for (const auto& cells : answer.results[i].rows) {
      std::string row;
      for (const auto& cell : cells) {
        if (cells.size() == 5 && row.ends_with(" token ")) break;  // a grant; the rest is for those who find it busy
        row += cell_text(cell, pid) + ' ';
      }
      row.erase(row.find_last_not_of(" -") + 1);
      if (!row.empty()) rows.push_back(row);
    }
    std::sort(rows.begin(), rows.end());
    if (i > 0) text += " /";
    for (std::size_t row = 0; row < rows.size(); ++row) text += (row > 0 ? ", " : i > 0 ? " " : "") + rows[row];
  }
  text.erase(0, text.find_first_not_of(' '));
  return text;
}

Scenario scenario_of(bool optimistic, const std::string& name, std::string_view steps) {
  struct Placeholder {
    const char* name;
    const char* of_table;
    const char* of_optimistic;
  };
  std::string text(steps);
  for (const auto& [what, of_table, of_optimistic] :
       {Placeholder{"$T", "lease", "optimistic"}, Placeholder{"$ONE", one, one}, Placeholder{"$SEEN_A", "- -", "a 1"},
        Placeholder{"$SEEN_E", "- -", "e 1"}, Placeholder{"$SEEN_H", "- -", "h 1"}, Placeholder{"$SEEN", "- -", "a 2"},
        Placeholder{"$LEFT", " lease", ""}}) {
    text = replaced(text, what, optimistic ? of_optimistic : of_table);
  }
  return {(optimistic ? "optimistic" : "table") + name, text};
}

void play_line(const std::string& line, StepSessions& sessions) {
  std::istringstream words(line);
  std::string first;
  std::string word;
  std::string rest;
  if (!(words >> first)) return;
  if (first == "unlocks") return sessions.unlock_row();
  std::getline(words >> word >> std::ws, rest);
  if (first == "pass") return sessions.pass(std::chrono::milliseconds(std::stoi(word)));
  if (first == "locks") return sessions.lock_row(word, rest);
  const int session = std::stoi(first);
  if (word == "end") return sessions.end(session);
  if (word == "hears") {
    EXPECT_EQ(replaced(sessions.notification(session), "\t", " "), rest);
    return;
  }
  std::string expected = rest;
  if (word != "<=") {
    sessions.send(session, commands_in(word + " " + rest));
    if (line.ends_with("...")) return sessions.await_wait(session);
    const std::size_t arrow = line.find("=>") + 2;
    expected = arrow < line.size() ? line.substr(line.find_first_not_of(' ', arrow)) : "";
  }
  EXPECT_EQ(text_of(sessions.answer(session), sessions.id(session)), expected);
}

}  // namespace

std::vector<Scenario> scenarios() {
  std::vector<Scenario> all;
  for (const bool optimistic : {false, true}) {
    all.push_back(scenario_of(optimistic, "OneHolder", rows_of_one_holder));
    all.push_back(scenario_of(optimistic, "LockedByOthers", rows_locked_by_others));
    all.push_back(scenario_of(optimistic, "Notifications", notifications));
    all.push_back(scenario_of(optimistic, "Election", election));
    all.push_back(scenario_of(optimistic, "Questions", questions));
  }
  const auto add = [&all](const char* name, std::string_view steps) { all.push_back({name, std::string(steps)}); };
  add("tableExpiry", replaced(std::string(expiry), "$ONE", one));
  add("optimisticTakeover", replaced(std::string(takeover), "$ONE", one));
  add("Semaphore", semaphore);
  add("ReadWriteLock", read_write);
  add("RowOfSeveralLocked", row_of_several_locked);
  add("QuestionsAboutSeveral", questions_about_several);
  add("QuestionsAboutSessions", questions_about_sessions);
  add("Advisory", advisory);
  add("SharedAdvisory", shared_advisory);
  add("ForUpdate", for_update);
  return all;
}

void play(const Scenario& scenario, StepSessions& sessions) {
  sql::play_lines(scenario, [&](const std::string& line) { play_line(line, sessions); });
}

}  // namespace dlock::postgres
