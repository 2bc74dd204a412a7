#include "tests/simulation/sql/statement_steps.hpp"

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "backends/postgres/rows/row_commands.hpp"
#include "tests/unit/postgres/all_statements.hpp"

namespace dlock::postgres {

namespace {

constexpr std::string_view rows_locked_by_others = R"(
  1 acquire x a ; acquire y c => yes token ; yes token
  locks $T x
  2 acquire x a ; acquire z d => no ; yes token
  2 acquire x b => no $A1lease
  2 renew x a ; renew y c => again ; yes
  2 release x a ; release y c => again ; yes
  2 $T.break_lock x c => f
  2 $T.inspect x => x t h token $LEFT
  2 release x b => no
  2 release x b gave_up => again
  2 mark x => again
  unlocks
  2 release x b gave_up => no
  2 release x a => yes
  locks $T x
  2 $T.forget '' 0 10 => y
  unlocks
  2 $T.forget '' 0 10 => x
)";

constexpr std::string_view notifications = R"(
  3 listen c =>
  1 acquire x a => yes token
  1 release x a => yes
  2 mark x ; mark y => no ; no
  1 acquire x a => yes token
  2 mark x => yes
  4 mark x => yes
  1 release x a quiet => yes
  1 acquire x a => yes token
  1 release x a => yes
  3 hears x
)";

constexpr std::string_view notifications_of_elections = R"(
  3 listen c =>
  1 acquire x a => yes token
  2 mark x => yes
  1 release x a quiet => yes
  2 mark x => yes
  2 acquire x b => yes token
  3 hears x
)";

constexpr std::string_view expiry = R"(
  1 acquire x a lease=100 => yes token
  pass 150
  1 renew x a => no
  2 acquire x b => yes token
  1 release x a => no
  1 mark x => yes
)";

constexpr std::string_view permits_in_one_statement = R"(
  1 acquire x b 1/2 ; acquire x c 1/2 => yes token ; yes token
  1 release x b ; release x c ; acquire x d 1/3 ; acquire x e 1/2 => yes ; yes ; yes token ; no permits 3 lease
  1 acquire u a 1/2 ; release u a => no 0 ; no
  1 acquire u b 1/1 => yes token
)";

constexpr std::string_view readers_and_writers_in_one_statement = R"(
  3 listen c =>
  1 acquire x a 1/9 ; acquire x w 9/9 mark=60000 ; acquire x b 1/9 => yes token ; no lease ; yes token
  2 acquire x v 9/9 mark=60000 => no lease
  2 mark x => yes
  2 release x w => no
  3 hears x
  2 acquire x c 1/9 => yes token
  2 release x a ; release x b ; release x c quiet => yes ; yes ; yes
  2 acquire x w 9/9 mark=60000 ; acquire x a 1/9 ; acquire x v 9/9 => yes token ; no lease ; no lease
  2 release x w ; acquire x a 1/9 => yes ; yes token
)";

constexpr std::string_view row_of_several_locked = R"(
  1 acquire x a 1/2 => yes token
  locks lease_sem x
  2 acquire x b 1/2 => 55P03
  2 release x c gave_up => 55P03
  2 acquire x b 1/3 => no permits 2 lease
  2 release x b => no
  unlocks
  2 acquire x b 1/2 => yes token
)";

constexpr std::string_view advisory = R"(
  1 fence.try_lock 7 x h => token s1
  1 fence.proof 9 => s1 t t
  2 fence.proof 7 => s2 - f
  2 fence.try_lock 7 x h =>
  2 fence.try_many {7,8} {x,y} {h,h} => y token s2
  2 fence.unlock 7 => f
  2 fence.unlock_many {7,8} => f, t
  2 fence.lock_slice 7 x h 100 => 55P03
  2 fence.lock_slice 7 x h 60000 ...
  3 fence.lock_slice 7 x h 60000 ...
  1 fence.unlock 7 => t
  2 <= token s2
  4 fence.try_lock 7 x h =>
  2 end
  3 <= token s3
  3 fence.unlock 7 => t
  3 fence.unlock 7 => f
  4 fence.try_lock 7 x h => token s4
)";

constexpr std::string_view shared_advisory = R"(
  1 fence_rw.try_lock_shared 7 x h 2 => token s1
  2 fence_rw.try_lock_shared 7 x h 1 => token s2
  3 fence_rw.try_lock 7 x h =>
  1 fence_rw.join_shared 7 x h 1 => token s1
  3 fence_rw.lock_slice 7 x h 60000 ...
  1 fence_rw.join_shared 7 x h 1 =>
  4 fence_rw.try_lock_shared 7 x h 1 =>
  4 fence_rw.lock_slice_shared 7 x h 60000 ...
  5 fence_rw.lock_slice_shared 7 x h 60000 ...
  1 fence_rw.unlock 7 => f
  1 fence_rw.unlock_many_shared {7} => t
  2 fence_rw.unlock_shared 7 => t
  3 <= token s3
  3 fence_rw.unlock 7 => t
  4 <= token s4
  5 <= token s5
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
  1 acquire x a => yes token
  2 $T.inspect x => x t h token $LEFT
  2 $T.list 10 => x t h token $LEFT
  2 $T.forget x 0 10 =>
  2 $T.break_lock x c => t
  2 $T.break_lock x c =>
  1 renew x a => no
  2 $T.inspect x => x f  token
  2 $T.forget '' 3600000000 10 =>
  2 $T.forget '' 0 10 => x
  2 $T.list 10 =>
)";

constexpr std::string_view questions_about_permits = R"(
  1 acquire x a 1/2 => yes token
  2 lease_sem.inspect x => x t h token lease - 2 1 token
  2 lease_sem.break_lock x c => t
  2 lease_sem.inspect x => x f  token 0 - 2
  2 lease_sem.forget x 0 10 => x
  1 acquire held a 1/1 ; acquire marked a 1/2 ; acquire waited a 1/1 => yes token ; yes token ; yes token
  1 acquire marked w 2/2 mark=60000 => no lease
  2 mark waited => yes
  1 release marked a ; release waited a quiet => yes ; yes
  1 acquire idle a 1/1 => yes token
  1 release idle a => yes
  2 lease_sem.forget '' 0 10 => idle
)";

constexpr std::string_view questions_about_writers = R"(
  1 acquire x w 9/9 => yes token
  2 lease_rw.list 10 => x t h token lease - 9 9 token
)";

constexpr std::string_view questions_about_sessions = R"(
  1 fence.inspect 7 x => x f  0 - 0
  1 fence.try_lock 7 x h => token s1
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
  1 row_lock.ensure y =>
  1 begin ; row_lock.try_lock y h ; heartbeat => / token name 0 / read committed
  3 row_lock.forget '' 0 10 =>
  1 commit =>
  3 row_lock.forget '' 0 10 => y
)";

}  // namespace

std::vector<sql::Scenario> scenarios() {
  std::vector<sql::Scenario> all = sql::common_scenarios();
  for (const bool optimistic : {false, true}) {
    all.push_back(sql::scenario_of(optimistic, "LockedByOthers", rows_locked_by_others));
    all.push_back(sql::scenario_of(optimistic, "Notifications", notifications));
    all.push_back(sql::scenario_of(optimistic, "NotificationsOfElections", notifications_of_elections));
    all.back().store += "_elect";
    all.push_back(sql::scenario_of(optimistic, "Questions", questions));
  }
  const auto add = [&all](const char* name, const char* store, std::string_view steps) {
    all.push_back({name, std::string(steps), store});
  };
  add("TableExpiry", "lease", expiry);
  add("PermitsInOneStatement", "lease_sem", permits_in_one_statement);
  add("ReadersAndWritersInOneStatement", "lease_rw", readers_and_writers_in_one_statement);
  add("RowOfSeveralLocked", "lease_sem", row_of_several_locked);
  add("QuestionsAboutPermits", "lease_sem", questions_about_permits);
  add("QuestionsAboutWriters", "lease_rw", questions_about_writers);
  add("QuestionsAboutSessions", "lease", questions_about_sessions);
  add("Advisory", "lease", advisory);
  add("SharedAdvisory", "lease", shared_advisory);
  add("ForUpdate", "lease", for_update);
  return all;
}

void play(const sql::Scenario& scenario, sql::StepSessions& sessions) {
  static const sql::StepService service = [] {
    sql::StepService made;
    made.store_of = [](LockKind kind, bool optimistic) {
      const Strategy strategy = optimistic ? Strategy::optimistic : Strategy::table;
      return std::make_unique<RowCommands>(row_statements(strategy, "dlock", Durability::sync, kind), kind, "c");
    };
    made.only_cells = true;
    for (const auto& [word, sql] : all_statements("dlock", Durability::sync)) {
      made.statements.try_emplace(word, Statement{.sql = sql, .word = word});
    }
    return made;
  }();
  sql::play(scenario, sessions, service);
}

}  // namespace dlock::postgres
