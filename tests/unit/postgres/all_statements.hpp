// Every statement of dlock, by a name for messages.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/postgres/administration/diagnosis.hpp"
#include "backends/postgres/schema/layout.hpp"
#include "backends/postgres/sql/identifier.hpp"
#include "backends/postgres/sql/preamble.hpp"
#include "backends/postgres/sql/statements.hpp"

namespace dlock::postgres {

using NamedStatements = std::vector<std::pair<std::string, std::string>>;

class AllStatements {
 public:
  AllStatements(std::string_view schema, Durability durability) {
    using KeySpace = AdvisoryKey::KeySpace;
    for (const LockKind kind : {LockKind::lock, LockKind::election}) {
      add(table_statements(schema, durability, kind));
      add(optimistic_statements(schema, durability, kind));
    }
    for (const LockKind kind : {LockKind::read_write, LockKind::semaphore}) {
      add(sharing_statements(schema, durability, kind));
    }
    const auto f = for_update_statements(schema, durability);
    add({&f.ensure, &f.begin, &f.set_patience, &f.try_lock, &f.lock, &f.heartbeat, &f.commit, &f.rollback,
         &f.try_in_transaction, &f.lock_in_transaction, &f.ensure_in_transaction, &f.inspect, &f.list, &f.break_lock,
         &f.forget});
    for (const KeySpace space : {KeySpace::bigint, KeySpace::pair, KeySpace::server}) {
      add(advisory_statements(schema, durability, space));
      add(advisory_statements(schema, durability, space, LockKind::election));
      for (const Mode mode : {Mode::exclusive, Mode::shared}) {
        add(advisory_statements(schema, durability, space, LockKind::read_write, mode));
      }
    }
    const Statement limit = limit_of_wait();
    const Statement snapshots = waits_for_snapshots();
    add({&limit, &snapshots});
    Options options;
    options.schema = schema;
    for (const Question& question : questions_of_doctor(options)) add({&question.statement});
    const Preamble preamble({}, {.version = 170000, .backend_pid = 1});
    add("preamble", {preamble.commands().at(0).text, preamble.commands().at(1).text});
    for (const bool with_schema : {true, false}) add("creation", creation(schema, durability, with_schema));
    add("recording", recording(schema));
    add("plain", {without_nested_loops_sql, "ROLLBACK", "SAVEPOINT dlock", "ROLLBACK TO SAVEPOINT dlock",
                  "RELEASE SAVEPOINT dlock", "LISTEN " + quote_identifier(schema)});  // really the schema's channel
  }

  NamedStatements all;

 private:
  // Not all kinds of locks have all of them.
  void add(std::initializer_list<const Statement*> statements) {
    for (const Statement* each : statements) {
      if (!each->sql.empty()) all.emplace_back(each->word, each->sql);
    }
  }
  void add(const std::string& name, const std::vector<std::string>& texts) {
    for (const std::string& sql : texts) all.emplace_back(name, sql);
  }
  void add(const RowStatements& s) {
    add({&s.change, &s.acquire, &s.acquire_one, &s.renew, &s.renew_one, &s.release, &s.release_one, &s.mark, &s.inspect,
         &s.list, &s.break_lock, &s.forget});
  }
  void add(const AdvisoryStatements& s) {
    add({&s.try_lock, &s.join, &s.lock_slice, &s.try_many, &s.proof, &s.unlock, &s.unlock_many, &s.try_in_transaction,
         &s.lock_in_transaction, &s.inspect, &s.inspect_without_tables, &s.list, &s.break_lock, &s.forget});
  }
};

[[nodiscard]] inline NamedStatements all_statements(std::string_view schema, Durability durability) {
  return AllStatements(schema, durability).all;
}

}  // namespace dlock::postgres
