// Every statement of dlock, by a name for messages.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/postgres/administration/diagnosis.hpp"
#include "backends/postgres/sql/identifier.hpp"
#include "backends/postgres/sql/preamble.hpp"
#include "backends/postgres/sql/schema_statements.hpp"
#include "backends/postgres/sql/statements.hpp"

namespace dlock::postgres {

using NamedStatements = std::vector<std::pair<std::string, std::string>>;

inline NamedStatements all_statements(std::string_view schema, Durability durability) {
  NamedStatements all;
  const auto add = [&](const std::string& name, const Statement& statement) { all.emplace_back(name, statement.sql); };
  const auto t = table_statements(schema, durability);
  add("table.acquire", t.acquire);
  add("table.acquire_many", t.acquire_many);
  add("table.renew_many", t.renew_many);
  add("table.release", t.release);
  add("table.release_many", t.release_many);
  add("table.mark_many", t.mark_many);
  add("table.leave_many", t.leave_many);
  add("table.inspect", t.inspect);
  add("table.list", t.list);
  add("table.break_lock", t.break_lock);
  add("table.forget", t.forget);
  const auto o = optimistic_statements(schema, durability);
  add("optimistic.acquire", o.acquire);
  add("optimistic.acquire_many", o.acquire_many);
  add("optimistic.renew_many", o.renew_many);
  add("optimistic.release", o.release);
  add("optimistic.release_many", o.release_many);
  add("optimistic.mark_many", o.mark_many);
  add("optimistic.leave_many", o.leave_many);
  add("optimistic.inspect", o.inspect);
  add("optimistic.list", o.list);
  add("optimistic.break_lock", o.break_lock);
  add("optimistic.forget", o.forget);
  for (const auto& older :
       {table_statements(schema, durability, Queue::none), optimistic_statements(schema, durability, Queue::none)}) {
    add("older.release", older.release);
    add("older.release_many", older.release_many);
    add("older.mark_many", older.mark_many);
  }
  for (const auto& [start, of] :
       {std::pair{"table", table_statements(schema, durability, Queue::none, LockKind::election)},
        std::pair{"optimistic", optimistic_statements(schema, durability, Queue::none, LockKind::election)}}) {
    const std::string name = "election." + std::string(start) + ".";
    add(name + "acquire", of.acquire);
    add(name + "acquire_many", of.acquire_many);
    add(name + "mark_many", of.mark_many);
    add(name + "release", of.release);
  }
  for (const LockKind space : {LockKind::read_write, LockKind::semaphore}) {
    const auto s = sharing_statements(schema, durability, space);
    add("sharing.change", s.change);
    add("sharing.mark_many", s.mark_many);
    add("sharing.inspect", s.inspect);
    add("sharing.list", s.list);
    add("sharing.break_lock", s.break_lock);
    add("sharing.forget", s.forget);
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
    add("advisory.inspect", a.inspect);
    add("advisory.list", a.list);
    add("advisory.break_lock", a.break_lock);
    add("advisory.forget", a.forget);
  }
  const auto s = schema_statements(schema);
  add("schema.version", s.version);
  add("schema.rights", s.rights);
  add("schema.tables", s.tables);
  add("schema.health", s.health);
  const auto q = server_questions();
  all.emplace_back("server.server", q.server);
  all.emplace_back("server.settings", q.settings);
  all.emplace_back("server.standbys", q.standbys);
  all.emplace_back("server.connections", q.connections);
  all.emplace_back("server.indexes", q.indexes);
  const Preamble preamble({}, {.version = 170000, .backend_pid = 1});
  all.emplace_back("preamble.question", preamble.commands().at(0).text);
  all.emplace_back("preamble.setting", preamble.commands().at(1).text);
  for (const bool with_schema : {true, false}) {
    for (const std::string& sql : creation(schema, durability, with_schema)) all.emplace_back("creation", sql);
  }
  for (const std::string& sql : end_of_creation(schema)) all.emplace_back("end_of_creation", sql);
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
