#include "tests/simulation/sql/statement_steps.hpp"

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "backends/mysql/sql/questions.hpp"
#include "backends/mysql/sql/row_commands.hpp"
#include "backends/mysql/sql/session_statements.hpp"

namespace dlock::mysql {

using sql::Scenario;

namespace {

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

constexpr std::string_view released_first = R"(
  1 acquire u a 1/2 ; release u a => yes token ; no
  1 release u a => yes
  1 acquire u b 1/1 => yes token
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

}  // namespace

std::vector<Scenario> scenarios() {
  std::vector<Scenario> all = sql::common_scenarios();
  for (const bool optimistic : {false, true}) {
    all.push_back(sql::scenario_of(optimistic, "LockedByOthers", row_locked_by_others));
    all.push_back(sql::scenario_of(optimistic, "Bells", bells));
    all.push_back(sql::scenario_of(optimistic, "BellsOfSessionsThatEnd", bells_of_sessions_that_end));
    all.push_back(sql::scenario_of(optimistic, "BellsOfFailedQueries", bells_of_failed_queries));
    all.push_back(sql::scenario_of(optimistic, "Questions", questions_about_rows));
  }
  const auto add = [&all](const char* name, const char* store, std::string_view steps) {
    all.push_back({name, std::string(steps), store});
  };
  add("TableExpiry", "lease", expiry);
  add("ReleasedFirst", "lease_sem", released_first);
  add("RowOfSeveralLocked", "lease_sem", row_of_several_locked);
  add("QuestionsAboutSeveral", "lease_sem", questions_about_several);
  add("ForUpdate", "lease", for_update);
  add("Named", "lease", named);
  return all;
}

void play(const Scenario& scenario, sql::StepSessions& sessions) {
  static const sql::StepService service{
      .statements = statements_by_word(), .store_of = [](LockKind kind, bool optimistic) {
        return std::make_unique<RowCommands>("dlock", kind, optimistic, [] { return true; });
      }};
  sql::play(scenario, sessions, service);
}

}  // namespace dlock::mysql
