#include "backends/postgres/administration/diagnosis.hpp"

#include <chrono>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "backends/postgres/administration/findings.hpp"
#include "backends/postgres/schema/layout.hpp"
#include "backends/postgres/sql/sql_template.hpp"
#include "backends/postgres/sql/statements.hpp"

namespace dlock::postgres {

using Severity = Finding::Severity;

namespace {

// One row: version, seconds since 1970, whether over TCP.
constexpr std::string_view about_server = R"sql(
  SELECT pg_catalog.current_setting('server_version'), extract(epoch FROM pg_catalog.clock_timestamp())::{int8},
    pg_catalog.inet_server_addr() IS NOT NULL
)sql";

// $1 names. Rows of name, value, value by default.
constexpr std::string_view about_settings = R"sql(
  SELECT name, setting, reset_val FROM pg_catalog.pg_settings WHERE name {=} ANY ($1::{text}[])
)sql";

constexpr std::string_view about_standbys = "SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_replication";

// One row: limit and number of connections of the server, of the role, and of the database. Below zero: no limit. An
// ordinary role sees the role and the database of all sessions.
constexpr std::string_view about_connections = R"sql(
  SELECT pg_catalog.current_setting('max_connections')::{int8}
      {-} pg_catalog.current_setting('superuser_reserved_connections')::{int8},
    a.everybodys, r.rolconnlimit, a.roles, d.datconnlimit, a.databases
  FROM pg_catalog.pg_roles AS r CROSS JOIN pg_catalog.pg_database AS d CROSS JOIN (
    SELECT pg_catalog.count(*) AS everybodys,
      pg_catalog.count(*) FILTER (WHERE s.usename {=} current_user) AS roles,
      pg_catalog.count(*) FILTER (WHERE s.datname {=} pg_catalog.current_database()) AS databases
    FROM pg_catalog.pg_stat_activity AS s WHERE s.usesysid IS NOT NULL AND s.datid IS NOT NULL) AS a
  WHERE r.rolname {=} current_user AND d.datname {=} pg_catalog.current_database()
)sql";

// $1 schema. Table and index, for each index that is not the primary key's.
constexpr std::string_view about_indexes = R"sql(
  SELECT c.relname, i.relname FROM pg_catalog.pg_index AS x
    JOIN pg_catalog.pg_class AS c ON c.oid {=} x.indrelid JOIN pg_catalog.pg_class AS i ON i.oid {=} x.indexrelid
    JOIN pg_catalog.pg_namespace AS n ON n.oid {=} c.relnamespace
  WHERE n.nspname {=} $1::{name} AND NOT x.indisprimary ORDER BY c.relname, i.relname
)sql";

// $1 schema. A row for each table: name, live rows, dead rows, updates, HOT updates among them, bytes (with indexes).
constexpr std::string_view about_health = R"sql(
  SELECT s.relname, s.n_live_tup, s.n_dead_tup, s.n_tup_upd, s.n_tup_hot_upd,
    pg_catalog.pg_total_relation_size(s.relid)
  FROM pg_catalog.pg_stat_all_tables AS s
  WHERE s.schemaname {=} $1::{name} AND s.relname {=} ANY ({names}) ORDER BY s.relname
)sql";

struct Diagnosis {
  const Backend::Handler<std::vector<Finding>> done;
  std::size_t under_way = 0;
  Examined found = {};
  std::string unreachable = {};
  std::vector<Finding> not_checked = {};
};

void note_answer(Diagnosis& diagnosis, const Question& question, const Outcome& outcome, const Results& results,
                 const Commands& commands) {
  Examined& found = diagnosis.found;
  const std::string why = unanswered_question(outcome.failure).detail;
  if (outcome.problem == Problem::none) {
    if (found.answers.empty()) found.round_trip = commands.executor().now() - outcome.sent;
    const auto ours = commands.executor().clock().wall_now().time_since_epoch();
    if (question.statement.word == "server") found.our_clock = std::chrono::floor<std::chrono::seconds>(ours).count();
    found.answers[question.statement.word] = results[0];
  } else if (outcome.problem != Problem::refused) {
    if (diagnosis.unreachable.empty()) diagnosis.unreachable = why;
  } else if (!question.check.empty()) {
    diagnosis.not_checked.push_back({Severity::note, question.check, "cannot be checked: " + why});
  }
}

void report(Diagnosis& diagnosis, const Commands& commands, const Options& options) {
  if (!diagnosis.unreachable.empty()) {
    return diagnosis.done(std::vector<Finding>{{Severity::error, "server", diagnosis.unreachable}});
  }
  diagnosis.found.server = commands.server();
  std::vector<Finding> findings = server_findings(diagnosis.found, options);
  for (const auto& more : {table_findings(diagnosis.found, options), diagnosis.not_checked}) {
    findings.insert(findings.end(), more.begin(), more.end());
  }
  diagnosis.done(std::move(findings));
}

}  // namespace

std::vector<Question> questions_of_doctor(const Options& options) {
  const std::vector<std::string> settings = interesting_settings();
  const SchemaStatements of_schema = schema_statements(options.schema);
  const auto ask = [](std::string_view text, const char* word) {
    return Statement{fill(text, {{"names", names_of_tables()}}), word};
  };
  return {
      {ask(about_server, "server"), "server"},
      {ask(about_settings, "settings"), "settings", {text_array({settings.begin(), settings.end()})}},
      {ask(about_standbys, "standbys"), "replication"},
      {ask(about_connections, "connections"), "connections"},
      {of_schema.rights, "schema", {options.schema}},
      {of_schema.tables, "schema", {options.schema}},
      {ask(about_health, "health"), "table health", {options.schema}},
      {ask(about_indexes, "indexes"), "indexes", {options.schema}},
      {of_schema.version, ""},
  };
}

void diagnose(Commands& commands, const Options& options, Backend::Handler<std::vector<Finding>> done) {
  const std::vector<Question> questions = questions_of_doctor(options);
  const auto diagnosis = std::make_shared<Diagnosis>(Diagnosis{.done = std::move(done), .under_way = questions.size()});
  for (const Question& question : questions) {
    Query query{.commands = {{.text = question.statement.sql, .params = question.params}},
                .done = [diagnosis, question, &commands, &options](const Outcome& outcome, const Results& results) {
                  note_answer(*diagnosis, question, outcome, results, commands);
                  if (--diagnosis->under_way == 0) report(*diagnosis, commands, options);
                }};
    commands.run(std::move(query), commands.answer_by(), MissingSchema::refuse);
  }
}

}  // namespace dlock::postgres
