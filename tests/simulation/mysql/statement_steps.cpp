#include "statement_steps.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "backends/mysql/sql/questions.hpp"
#include "backends/mysql/sql/row_commands.hpp"
#include "backends/mysql/sql/session_statements.hpp"

namespace dlock::mysql {

using sql::Scenario;
using sql::StepSessions;

namespace {

using Kind = RowRequest::Kind;
using Status = RowAnswer::Status;

// $A1: what strategy=optimistic shows of owner a and version 1.
constexpr std::string_view rows_of_one_holder = R"(
  1 acquire x a => yes token
  1 acquire x a held => yes same
  2 acquire x b ; acquire y c ; acquire z d => no $A2lease ; yes token ; yes token
  2 acquire v e ; acquire v f ; acquire w g ; acquire w h held => yes token ; no $E1lease ; no $H1lease ; yes token
  2 renew x b ; renew y c ; renew w h => no ; yes ; yes
  2 release x b => no
  2 release x b ; release y c gave_up => no ; yes
  2 release y c gave_up => no
  1 renew x a => yes
  1 release x a => yes
  1 renew x a => no
  2 acquire x b => yes token
  2 acquire x c quiet ; release x b quiet => yes token ; yes
  2 release x c quiet => yes
  1 acquire x a quiet => yes token
)";

constexpr std::string_view row_locked_by_others = R"(
  1 acquire x a => yes token
  locks $T x
  2 acquire x b => 1205
  1 renew x a => 1205
  1 acquire y c ; release x a => 1205
  unlocks
  2 acquire y b => yes token
  1 release x a => yes
)";

constexpr std::string_view bells = R"(
  1 acquire x a => yes token
  2 $T.wait x 0 => 0
  2 $T.wait x 60000000 ...
  3 acquire x c => no $A1lease
  1 release x a => yes
  2 <= 1
  3 acquire x c => no soon
  1 acquire x a => no soon
  2 acquire x b => yes token
  3 $T.wait x 60000000 ...
  2 release x b ; acquire x a => yes ; no soon
  3 <= 1
  2 $T.leave x => 0
  1 acquire x a place=3 => yes token
  1 $T.wait x 0 => 0
  1 release x a => yes
  2 acquire x b => no soon
  3 $T.leave x => 1
  1 $T.wait x 0 => 1
  2 acquire x b => no soon
  pass 600
  2 acquire x b => yes token
)";

constexpr std::string_view bells_of_sessions_that_end = R"(
  1 acquire x a => yes token
  2 $T.wait x 60000000 ...
  1 end
  2 <= 1
  2 acquire x b => no $A1lease
  3 acquire y a quiet => yes token
  2 $T.wait y 0 => 1
  2 end
  1 acquire z b => yes token
  1 end
  3 renew z b => yes
  2 $T.wait z 0 => 0
)";

constexpr std::string_view bells_of_failed_queries = R"(
  1 acquire x z ; acquire z z => yes token ; yes token
  1 release x z ; release z z => yes ; yes
  locks $T z
  1 acquire x a ; acquire z b => 1205
  unlocks
  2 $T.wait x 0 => 0
  1 $T.tidy x => 1
  2 $T.wait x 0 => 1
  2 $T.tidy x => 1
  2 acquire x b => yes token
  2 $T.tidy x => 0
  1 $T.wait x 0 => 0
)";

constexpr std::string_view expiry = R"(
  1 acquire x a lease=100 => yes token
  pass 150
  1 renew x a quiet => no
  2 acquire x b => yes token
  3 lease.wait x 0 => 0
  1 release x a => no
  1 renew x a => no
  3 lease.wait x 0 => 1
  2 renew x b => yes
  2 release x b => yes
  1 acquire y a lease=100 => yes token
  pass 150
  2 release y b => no
  1 acquire y a held => yes same
  1 release y a => yes
)";

constexpr std::string_view takeover = R"(
  1 acquire x a => yes token
  2 acquire x b seen=a:7 => no a 1 lease
  1 renew x a => yes
  2 acquire x b seen=a:1 => no a 2 lease
  2 acquire x b seen=a:2 => yes token
  1 renew x a => no
  1 release x a => no
)";

constexpr std::string_view semaphore = R"(
  1 acquire x a 1/2 ; acquire x b 1/2 ; acquire x c 1/2 ; acquire y d 1/1 => yes token ; yes token ; no lease ; yes token
  1 acquire x b 1/2 held => yes same
  2 release x a ; renew x b ; acquire x c 1/2 ; renew y e => yes ; yes ; yes token ; no
  1 release x a ; renew x a ; release z a => no ; no ; no
  1 acquire x d 1/3 ; acquire x e 1/2 => no permits 2 lease ; no lease
  1 release x b ; release x c => yes ; yes
  1 acquire x d 1/3 ; acquire x e 1/2 => yes token ; no permits 3 lease
  1 acquire u a 1/2 ; release u a => yes token ; no
  1 release u a => yes
  1 acquire u b 1/1 => yes token
  1 acquire v a 1/1 lease=100 => yes token
  pass 150
  1 renew v a ; acquire v b 1/1 => no ; yes token
  1 release v a => no
  1 acquire v b 1/1 held => yes same
)";

constexpr std::string_view read_write = R"(
  1 acquire x a 1/9 => yes token
  1 acquire x w 9/9 mark=60000 => no lease
  1 acquire x b 1/9 => no lease
  2 acquire x v 9/9 mark=60000 => no lease
  2 release x w => no
  2 acquire x c 1/9 => yes token
  2 acquire x v 9/9 mark=60000 => no lease
  2 release x a ; release x c => yes ; yes
  2 acquire x b 1/9 => no lease
  2 acquire x v 9/9 mark=60000 => yes token
  1 acquire x a 1/9 => no lease
  2 release x v => yes
  1 acquire x a 1/9 => yes token
  1 acquire x w 9/9 mark=100 => no lease
  pass 150
  1 acquire x b 1/9 => yes token
  1 acquire y a 1/9 lease=100 ; acquire y b 1/9 lease=100 => yes token ; yes token
  pass 150
  1 acquire y w 9/9 => yes token
  1 acquire y b 1/9 held => no lease
  1 release y w => yes
  1 acquire y b 1/9 held => yes token
)";

constexpr std::string_view row_of_several_locked = R"(
  1 acquire x a 1/2 => yes token
  locks lease_sem x
  2 acquire x b 1/2 => 1205
  1 renew x a => 1205
  unlocks
  2 acquire x b 1/2 => yes token
)";

constexpr std::string_view questions_about_rows = R"(
  1 $T.inspect x =>
  1 acquire x a => yes token
  2 $T.wait x 60000000 ...
  3 $T.inspect x => x 1 h token $LEFT 1
  2 end
  3 $T.list 10 => x 1 h token $LEFT -
  3 $T.forgettable x x 0 10 =>
  3 $T.forget x 0 =>
  3 $T.break_lock x => token
  3 $T.break_lock x =>
  1 renew x a => no
  3 $T.inspect x => x 0  token - 0
  3 $T.forgettable '' '' 3600000000 10 =>
  3 $T.forgettable '' '' 0 10 => x
  3 $T.forget x 0 => 1
  3 $T.list 10 =>
  1 acquire x a => yes token
)";

constexpr std::string_view questions_about_several = R"(
  1 acquire x a 1/2 ; acquire x b 1/2 => yes token ; yes token
  2 lease_sem.inspect x => x 1 h token lease - 2 1 token, x 1 h token lease - 2 1 token
  2 lease_sem.lock x ; lease_sem.forget x 0 ; lease_sem.forget_slots x x => / /
  2 lease_sem.lock x ; lease_sem.break_lock x => / token
  1 release x a => no
  2 lease_sem.list 10 => x 0  token - - 2 - -
  2 lease_sem.forgettable '' '' 0 10 => x
  2 lease_sem.lock x ; lease_sem.forget x 0 ; lease_sem.forget_slots x x => / 1 / 2
  1 acquire x a 2/2 => yes token
)";

constexpr std::string_view for_update = R"(
  1 begin ; row_lock.try_lock x ; row_lock.fence h x => / /
  1 rollback =>
  1 row_lock.ensure x => 1
  1 row_lock.ensure x =>
  1 begin ; row_lock.try_lock x ; row_lock.fence h x => / x / token
  2 begin ; row_lock.try_lock x => 1205
  2 rollback ; set_patience 1 ; begin ; row_lock.lock x => 1205
  3 uncommitted ; row_lock.inspect x ; row_lock.inspect_committed x => / x 1 h token - - s1 / x 0
  3 row_lock.forgettable '' '' 0 10 =>
  2 rollback ; set_patience 60 ; begin ; row_lock.lock x ; row_lock.fence h x ...
  3 set_patience 60 ; begin ; row_lock.lock x ; row_lock.fence h x ...
  1 commit =>
  2 <= / / / x / token
  2 end
  3 <= / / x / token
  3 rollback =>
  3 uncommitted ; row_lock.inspect x ; row_lock.inspect_committed x => / x 1 h token - - s1 / x token
  1 limit_wait 1 ; begin ; row_lock.lock_in_transaction y h ; restore_wait => / / token /
  3 limit_wait 1 ; begin ; row_lock.lock_in_transaction y h => 1205
  3 rollback =>
  1 rollback =>
  3 row_lock.forgettable y y 0 10 =>
  3 row_lock.forgettable '' '' 0 10 => x
  3 row_lock.forget x 0 => 1
)";

constexpr std::string_view named = R"(
  3 fence.inspect x => x 0  0 - 0 -
  1 fence.get x 0 ; fence.fence x h x => 1 s1 / token
  2 fence.get x 0 ; fence.fence x h x => 0 s2 /
  2 fence.get x 60000000 ; fence.fence x h x ...
  3 fence.inspect x => x 1 h token - 1 s1
  3 fence.list 10 => x 1 h token - - s1
  3 fence.forgettable '' '' 0 10 =>
  1 fence.release x => 1
  2 <= 1 s2 / token
  1 fence.release x => 0
  3 fence.get x 60000000 ; fence.fence x h x ...
  2 end
  3 <= 1 s3 / token
  3 fence.release x => 1
  3 fence.release x => -
  3 fence.inspect x => x 0  token - 0 -
  3 fence.forgettable '' '' 0 10 => x
  3 fence.forget x 0 => 1
  1 verbatim.get x 0 => 1 s1
  2 fence.get x 0 => 1 s2
)";

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

// --- All statements by their words -----------------------------------------------------------------------------------

using Words = std::map<std::string, sql::Statement>;

void add(Words& words, const std::vector<sql::Statement>& statements) {
  for (const sql::Statement& statement : statements) words.emplace(statement.word, statement);
}

void add_questions(Words& words, const Questions& questions) {
  add(words, {questions.inspect, questions.list, questions.break_lock, questions.forgettable, questions.forget});
  for (const auto& some : {questions.uncommitted, questions.inspect_committed, questions.list_committed,
                           questions.lock_row, questions.forget_slots}) {
    if (some) add(words, {*some});
  }
}

Words statements_by_word() {
  Words words;
  for (const bool optimistic : {false, true}) {
    const auto use =
        optimistic ? optimistic_statements("dlock", LockKind::lock) : lease_statements("dlock", LockKind::lock);
    add(words, {use.tidy, use.wait, use.leave});
    add_questions(words, row_questions("dlock", LockKind::lock, optimistic));
  }
  add_questions(words, row_questions("dlock", LockKind::semaphore, false));
  const auto row = for_update_statements("dlock");
  add(words, {row.ensure, row.set_patience, row.begin, row.try_lock, row.lock, row.fence, row.commit, row.rollback,
              row.lock_in_transaction, row.limit_wait, row.restore_wait});
  add_questions(words, for_update_questions("dlock"));
  const auto key = named_statements("dlock", LockKind::lock, KeyNames::sha256);
  add(words, {key.get, key.fence, key.release});
  add_questions(words, named_questions("dlock", LockKind::lock, KeyNames::sha256));
  words["verbatim.get"] = named_statements("dlock", LockKind::lock, KeyNames::verbatim).get;
  return words;
}

// "begin ; row_lock.try_lock x"
std::vector<Command> commands_in(const std::string& text) {
  static const Words statements = statements_by_word();
  std::vector<Command> commands;
  std::istringstream words(text);
  bool begins = true;
  for (std::string word; words >> word;) {
    if (word == ";") {
      begins = true;
    } else if (std::exchange(begins, false)) {
      commands.push_back({.statement = &statements.at(word)});
    } else {
      commands.back().params.emplace_back(word == "''" ? "" : word);
    }
  }
  return commands;
}

bool is_token(const std::string& text) {
  constexpr std::size_t least_digits = 11;
  return text.size() >= least_digits && text.find_first_not_of("0123456789") == std::string::npos;
}

std::string text_of_ms(std::int64_t ms) {
  if (ms > 40000 && ms <= 60000) return "lease";
  return ms > 0 && ms <= 500 ? "soon" : std::to_string(ms);
}

// --- Playing ---------------------------------------------------------------------------------------------------------

OwnerId owner_of(char letter) {
  return {0, static_cast<std::uint64_t>(letter)};
}

class Player {
 public:
  Player(const Scenario& scenario, StepSessions& sessions)
      : sessions_(sessions),
        store_("dlock", kind_of(scenario.store), scenario.store == "optimistic", [] { return true; }) {}

  void play_line(const std::string& line) {
    std::istringstream words(line);
    std::string first;
    std::string word;
    std::string rest;
    if (!(words >> first)) return;
    if (first == "unlocks") return sessions_.unlock_row();
    std::getline(words >> word >> std::ws, rest);
    if (first == "pass") return sessions_.pass(std::chrono::milliseconds(std::stoi(word)));
    if (first == "locks") return sessions_.lock_row(word, rest);
    const int session = std::stoi(first);
    if (word == "end") return sessions_.end(session);
    if (word == "<=") return expect(session, rest);
    const std::string all = word + " " + rest;
    if (all.ends_with(" ...")) {
      sessions_.send(session, commands_in(all.substr(0, all.size() - 4)));
      return sessions_.await_wait(session);
    }
    const std::size_t arrow = all.find("=>");
    const std::string expected = arrow + 3 < all.size() ? all.substr(arrow + 3) : "";
    if (word == "acquire" || word == "renew" || word == "release") return ask(session, all.substr(0, arrow), expected);
    sessions_.send(session, commands_in(all.substr(0, arrow)));
    expect(session, expected);
  }

 private:
  static LockKind kind_of(const std::string& store) {
    if (store == "lease_sem") return LockKind::semaphore;
    if (store == "lease_rw") return LockKind::read_write;
    return store == "lease_elect" ? LockKind::election : LockKind::lock;
  }

  // --- Requests ---

  void ask(int session, const std::string& text, const std::string& expected) {
    std::vector<RowRequest> requests;
    bool quiet = false;
    std::istringstream words(text);
    RowRequest request;
    for (std::string word; words >> word;) {
      if (word == "quiet") {
        quiet = true;
      } else if (word != ";") {
        std::string name;
        char owner = 0;
        words >> name >> owner;
        requests.push_back({.kind = word == "acquire" ? Kind::acquire
                                    : word == "renew" ? Kind::renew
                                                      : Kind::release,
                            .name = name,
                            .owner = owner_of(owner),
                            .deadline = {},
                            .holder = "h",
                            .lease = std::chrono::seconds(60)});
        while (words >> std::ws && words.peek() != ';' && words >> word) {
          if (word == "quiet") quiet = true;
          read_option(word, requests.back());
        }
        words.clear();
      }
    }
    std::vector<RowAnswer> answers(requests.size(), {.status = Status::no_row});
    for (bool make_row = false;; make_row = true) {
      sql::RowStore::Requests some;
      for (std::size_t i = 0; i < requests.size(); ++i) {
        if (answers[i].status != Status::no_row) continue;
        requests[i].make_row = make_row;
        some.push_back(&requests[i]);
      }
      if (some.empty()) break;
      sessions_.send(session, store_.commands_for(some, quiet));
      const auto answer = sessions_.answer(session);
      if (answer.outcome.problem != sql::Problem::none) {
        EXPECT_EQ(answer.outcome.server_code, expected) << answer.outcome.failure.detail;
        return;
      }
      const auto given = store_.answers_to(some, answer.results, {});
      for (std::size_t i = 0; i < some.size(); ++i) {
        answers[static_cast<std::size_t>(some[i] - requests.data())] = given[i];
      }
    }
    // In the order in which the rows are changed, so that tokens can be compared.
    std::string out;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      out += (out.empty() ? "" : " ; ") + text_of(requests[i], answers[i]);
    }
    EXPECT_EQ(out, expected);
  }

  void read_option(const std::string& word, RowRequest& request) {
    const auto value = [&] { return word.substr(word.find('=') + 1); };
    const auto ms = [&] { return std::chrono::milliseconds(std::stoi(value())); };
    if (word == "held") request.may_be_held = true;
    if (word == "gave_up") request.gave_up = true;
    if (word.starts_with("lease=")) request.lease = ms();
    if (word.starts_with("mark=")) request.mark = ms();
    if (word.starts_with("place=")) request.place = static_cast<std::uint64_t>(sessions_.id(std::stoi(value())));
    if (word.starts_with("seen=")) {
      request.stood_still = {.owner = owner_of(value()[0]).to_string(), .version = std::stoi(value().substr(2))};
    }
    if (const auto slash = word.find('/'); slash != std::string::npos) {
      request.weight = std::stoi(word);
      request.permits = std::stoi(word.substr(slash + 1));
    }
  }

  std::string text_of(const RowRequest& request, const RowAnswer& answer) {
    if (answer.status != Status::yes && answer.status != Status::no) return "failed";
    std::string text = answer.status == Status::yes ? "yes" : "no";
    if (request.kind != Kind::acquire) return text;
    if (answer.status == Status::yes) {
      const std::uint64_t token = answer.token.value();
      std::uint64_t& last = tokens_[request.name];
      std::uint64_t& own = tokens_[request.name + ":" + request.owner.to_string()];
      const bool same = own == token;
      if (!same && token <= last) return "yes, with a token that is not greater";
      last = std::max(last, token);
      own = token;
      return text + (same ? " same" : " token");
    }
    if (answer.other_permits) text += " permits " + std::to_string(*answer.other_permits);
    if (!answer.seen.owner.empty()) {
      text += std::string(" ") + static_cast<char>(std::stoi(answer.seen.owner.substr(30), nullptr, 16)) + " " +
              std::to_string(answer.seen.version);
    }
    if (answer.lease) {
      text += " " + text_of_ms(std::chrono::duration_cast<std::chrono::milliseconds>(*answer.lease).count());
    }
    return text;
  }

  // --- Statements ---

  void expect(int session, const std::string& expected) {
    const auto answer = sessions_.answer(session);
    if (answer.outcome.problem != sql::Problem::none) {
      EXPECT_EQ(answer.outcome.server_code, expected) << answer.outcome.failure.detail;
      return;
    }
    std::string text;
    for (const Rows& rows : answer.results) text += (&rows == answer.results.data() ? "" : "/ ") + text_of(rows);
    text.erase(text.find_last_not_of(' ') + 1);
    EXPECT_EQ(text, expected);
  }

  std::string text_of(const Rows& rows) {
    std::string text;
    for (const Rows::Row& row : rows.rows) {
      if (!text.empty()) text.insert(text.size() - 1, ",");
      for (std::size_t column = 0; column < row.size(); ++column) {
        text += cell_text(row[column], column > 0 && column + 1 == row.size()) + ' ';
      }
    }
    if (!text.empty()) return text;
    if (is_token(std::to_string(rows.inserted))) return "token ";
    return rows.affected > 0 ? std::to_string(rows.affected) + " " : "";
  }

  std::string cell_text(const std::optional<std::string>& cell, bool last) {
    if (!cell) return "-";
    if (is_token(*cell)) return "token";
    if (cell->size() == 5 && cell->find_first_not_of("0123456789") == std::string::npos)
      return text_of_ms(std::stoi(*cell));
    for (int session = 1; last && session <= 3; ++session) {
      if (*cell == std::to_string(sessions_.id(session))) return "s" + std::to_string(session);
    }
    return *cell;
  }

  StepSessions& sessions_;
  const RowCommands store_;
  std::map<std::string, std::uint64_t> tokens_;  // by name, and by name and owner
};

Scenario scenario_of(bool optimistic, const std::string& name, std::string_view steps) {
  std::string text(steps);
  for (const char* const seen : {"$A1", "$A2", "$E1", "$H1"}) {
    const std::string shown = {static_cast<char>(seen[1] + 'a' - 'A'), ' ', seen[2], ' '};
    text = replaced(text, seen, optimistic ? shown : "");
  }
  text = replaced(text, "$T", optimistic ? "optimistic" : "lease");
  text = replaced(text, "$LEFT", optimistic ? "-" : "lease");
  return {(optimistic ? "Optimistic" : "Table") + name, text, optimistic ? "optimistic" : "lease"};
}

}  // namespace

std::vector<Scenario> scenarios() {
  std::vector<Scenario> all;
  for (const bool optimistic : {false, true}) {
    all.push_back(scenario_of(optimistic, "OneHolder", rows_of_one_holder));
    all.push_back(scenario_of(optimistic, "LockedByOthers", row_locked_by_others));
    all.push_back(scenario_of(optimistic, "Bells", bells));
    all.push_back(scenario_of(optimistic, "BellsOfSessionsThatEnd", bells_of_sessions_that_end));
    all.push_back(scenario_of(optimistic, "BellsOfFailedQueries", bells_of_failed_queries));
    all.push_back(scenario_of(optimistic, "Questions", questions_about_rows));
  }
  const auto add = [&all](const char* name, const char* store, std::string_view steps) {
    all.push_back({name, std::string(steps), store});
  };
  add("TableExpiry", "lease", expiry);
  add("OptimisticTakeover", "optimistic", takeover);
  add("Election", "lease_elect", scenario_of(false, "", rows_of_one_holder).steps);
  add("Semaphore", "lease_sem", semaphore);
  add("ReadWriteLock", "lease_rw", read_write);
  add("RowOfSeveralLocked", "lease_sem", row_of_several_locked);
  add("QuestionsAboutSeveral", "lease_sem", questions_about_several);
  add("ForUpdate", "lease", for_update);
  add("Named", "lease", named);
  return all;
}

void play(const Scenario& scenario, StepSessions& sessions) {
  Player player(scenario, sessions);
  sql::play_lines(scenario, [&](const std::string& line) { player.play_line(line); });
}

}  // namespace dlock::mysql
