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

// One row: connections that the server has room for, has; the role may have, has; the database may have, has. Below
// zero: no limit. Of others' sessions an ordinary role sees whose they are and in which database, but not what they do.
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

// Everything is asked at once; it is judged when the last answer is there.
class Diagnosis : public std::enable_shared_from_this<Diagnosis> {
 public:
  Diagnosis(Commands& commands, Backend::Handler<std::vector<Finding>> done)
      : commands_(commands), done_(std::move(done)) {}

  void start() {
    std::vector<Question> questions = questions_of_doctor(commands_.options());
    under_way_ = questions.size();
    for (Question& question : questions) {
      Query query{.commands = {{.text = std::move(question.statement.sql), .params = std::move(question.params)}},
                  .done = [self = shared_from_this(), word = question.statement.word, check = question.check](
                              const Outcome& outcome, const Results& results) {
                    self->read(word, check, outcome, results);
                    if (--self->under_way_ == 0) self->judge();
                  }};
      commands_.run(std::move(query), commands_.answer_by(), MissingSchema::refuse);
    }
  }

 private:
  void read(const std::string& word, const std::string& check, const Outcome& outcome, const Results& results) {
    const std::string why = unanswered_question(outcome.failure).detail;
    if (outcome.problem == Problem::none) {
      if (found_.answers.empty()) found_.round_trip = commands_.executor().now() - outcome.sent;
      const auto ours = commands_.executor().clock().wall_now().time_since_epoch();
      if (word == "server") found_.our_clock = std::chrono::floor<std::chrono::seconds>(ours).count();
      found_.answers[word] = results[0];
    } else if (outcome.problem != Problem::refused) {
      if (unreachable_.empty()) unreachable_ = why;
    } else if (!check.empty()) {
      not_checked_.push_back({Severity::note, check, "cannot be checked: " + why});
    }
  }

  void judge() {
    if (!unreachable_.empty()) return done_(std::vector<Finding>{{Severity::error, "server", unreachable_}});
    found_.server = commands_.server();
    std::vector<Finding> findings = server_findings(found_, commands_.options());
    for (const auto& more : {table_findings(found_, commands_.options()), not_checked_}) {
      findings.insert(findings.end(), more.begin(), more.end());
    }
    done_(std::move(findings));
  }

  Commands& commands_;
  const Backend::Handler<std::vector<Finding>> done_;
  std::size_t under_way_ = 0;
  Examined found_;
  std::string unreachable_;
  std::vector<Finding> not_checked_;
};

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

void diagnose(Commands& commands, Backend::Handler<std::vector<Finding>> done) {
  std::make_shared<Diagnosis>(commands, std::move(done))->start();
}

}  // namespace dlock::postgres
