// Every statement of dlock, by a name for messages.
#pragma once

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

inline NamedStatements all_statements(std::string_view schema, Durability durability) {
  NamedStatements all;
  const auto add = [&](const std::string& name, const Statement& statement) { all.emplace_back(name, statement.sql); };
  const auto add_rows = [&](const RowStatements& of) {
    for (const Statement* each : {&of.change, &of.acquire, &of.renew, &of.release, &of.mark, &of.inspect, &of.list,
                                  &of.break_lock, &of.forget}) {
      if (!each->sql.empty()) add(each->word, *each);
    }
  };
  for (const LockKind kind : {LockKind::lock, LockKind::election}) {
    add_rows(table_statements(schema, durability, kind));
    add_rows(optimistic_statements(schema, durability, kind));
  }
  for (const LockKind kind : {LockKind::read_write, LockKind::semaphore}) {
    add_rows(sharing_statements(schema, durability, kind));
  }
  add("limit_of_wait", limit_of_wait());
  add("waits_for_snapshots", waits_for_snapshots());
  const auto f = for_update_statements(schema, durability);
  add("for_update.ensure", f.ensure);
  add("for_update.begin", f.begin);
  add("for_update.set_patience", f.set_patience);
  add("for_update.try_lock", f.try_lock);
  add("for_update.lock", f.lock);
  add("for_update.heartbeat", f.heartbeat);
  add("for_update.commit", f.commit);
  add("for_update.rollback", f.rollback);
  add("for_update.try_in_transaction", f.try_in_transaction);
  add("for_update.lock_in_transaction", f.lock_in_transaction);
  add("for_update.ensure_in_transaction", f.ensure_in_transaction);
  add("for_update.inspect", f.inspect);
  add("for_update.list", f.list);
  add("for_update.break_lock", f.break_lock);
  add("for_update.forget", f.forget);
  using KeySpace = AdvisoryKey::KeySpace;
  for (const auto& [space, name] : {std::pair{KeySpace::bigint, "bigint"}, std::pair{KeySpace::pair, "pair"},
                                    std::pair{KeySpace::server, "server"}}) {
    const auto a = advisory_statements(schema, durability, space);
    const std::string start = std::string("advisory.") + name + ".";
    add(start + "try_lock", a.try_lock);
    add(start + "lock_slice", a.lock_slice);
    add(start + "try_many", a.try_many);
    add(start + "unlock", a.unlock);
    add(start + "unlock_many", a.unlock_many);
    add(start + "try_in_transaction", a.try_in_transaction);
    add(start + "lock_in_transaction", a.lock_in_transaction);
    add(start + "inspect", a.inspect);
    add(start + "inspect_without_tables", a.inspect_without_tables);
    add(start + "list", a.list);
    add(start + "break_lock", a.break_lock);
    add(start + "forget", a.forget);
  }
  for (const KeySpace space : {KeySpace::bigint, KeySpace::pair, KeySpace::server}) {
    const auto a = advisory_statements(schema, durability, space, LockKind::read_write, Mode::shared);
    add("advisory.shared.try_lock", a.try_lock);
    add("advisory.shared.join", a.join);
    add("advisory.lock_slice", a.lock_slice);
    add("advisory.proof", a.proof);
    add("advisory.unlock", a.unlock);
    add("advisory.unlock_many", a.unlock_many);
    add("advisory.inspect", a.inspect);
    add("advisory.list", a.list);
    add("advisory.break_lock", a.break_lock);
    add("advisory.forget", a.forget);
  }
  Options options;
  options.schema = schema;
  for (const Question& question : questions_of_doctor(options)) {
    add("doctor." + question.statement.word, question.statement);
  }
  const Preamble preamble({}, {.version = 170000, .backend_pid = 1});
  all.emplace_back("preamble.question", preamble.commands().at(0).text);
  all.emplace_back("preamble.setting", preamble.commands().at(1).text);
  for (const bool with_schema : {true, false}) {
    for (const std::string& sql : creation(schema, durability, with_schema)) all.emplace_back("creation", sql);
  }
  for (const std::string& sql : recording(schema)) all.emplace_back("recording", sql);
  for (const std::string& sql : extension(schema, layout()[1])) all.emplace_back("extension", sql);
  // What has no parts.
  for (const char* const sql :
       {"ROLLBACK", "SAVEPOINT dlock", "ROLLBACK TO SAVEPOINT dlock", "RELEASE SAVEPOINT dlock"}) {
    all.emplace_back("plain", sql);
  }
  all.emplace_back("plain", "LISTEN " + quote_identifier(schema));  // really the schema's channel
  return all;
}

}  // namespace dlock::postgres
