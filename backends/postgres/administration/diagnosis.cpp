#include "backends/postgres/administration/diagnosis.hpp"

#include <chrono>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "backends/postgres/administration/findings.hpp"
#include "backends/postgres/administration/inspection.hpp"
#include "backends/postgres/schema/layout.hpp"
#include "backends/postgres/sql/sql_template.hpp"
#include "backends/postgres/sql/statements.hpp"

namespace dlock::postgres {

using Severity = Finding::Severity;

namespace {

constexpr std::string_view about_server = R"sql(
  SELECT pg_catalog.current_setting('server_version'), extract(epoch FROM pg_catalog.clock_timestamp())::{int8},
    pg_catalog.inet_server_addr() IS NOT NULL
)sql";

constexpr std::string_view about_settings = R"sql(
  SELECT name, setting, reset_val FROM pg_catalog.pg_settings WHERE name {=} ANY ($1::{text}[])
)sql";

constexpr std::string_view about_standbys = R"sql(
  SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_replication
)sql";

// Of others' sessions an ordinary role sees whose they are and in which database, but not what they do.
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

constexpr std::string_view about_indexes = R"sql(
  SELECT c.relname, i.relname FROM pg_catalog.pg_index AS x
    JOIN pg_catalog.pg_class AS c ON c.oid {=} x.indrelid JOIN pg_catalog.pg_class AS i ON i.oid {=} x.indexrelid
    JOIN pg_catalog.pg_namespace AS n ON n.oid {=} c.relnamespace
  WHERE n.nspname {=} $1::{name} AND NOT x.indisprimary ORDER BY c.relname, i.relname
)sql";

// Everything is asked at once; it is judged when the last answer is there.
class Diagnosis : public std::enable_shared_from_this<Diagnosis> {
 public:
  Diagnosis(Commands& commands, Backend::Handler<std::vector<Finding>> done)
      : commands_(commands), done_(std::move(done)), deadline_(commands.answer_by()) {}

  void start() {
    const ServerQuestions questions = server_questions();
    const SchemaStatements statements = schema_statements(commands_.options().schema);
    const std::string& schema = commands_.options().schema;
    std::vector<std::string> names = interesting_settings();
    ++under_way_;  // this call
    ask("server", questions.server, {}, [this](const Rows& rows) { read_server(rows); });
    ask("settings", questions.settings, {text_array({names.begin(), names.end()})},
        [this](const Rows& rows) { read_settings(rows); });
    ask("replication", questions.standbys, {}, [this](const Rows& rows) { found_.standbys = rows.number(0, 0); });
    ask("connections", questions.connections, {}, [this](const Rows& rows) { found_.connections = rows; });
    ask("schema", statements.rights.sql, {schema}, [this](const Rows& rows) { found_.rights = rows; });
    ask("schema", statements.tables.sql, {schema}, [this](const Rows& rows) { found_.tables = rows; });
    ask("table health", statements.health.sql, {schema}, [this](const Rows& rows) { found_.health = rows; });
    ask("indexes", questions.indexes, {schema}, [this](const Rows& rows) { found_.indexes = rows; });
    // Where there is none, or where it cannot be read, the other answers say why.
    ask({}, statements.version.sql, {}, [this](const Rows& rows) { found_.schema_version = rows.number(0, 0); });
    answered();
  }

 private:
  using Reader = std::function<void(const Rows&)>;

  // A check without a name is not missed.
  void ask(std::string check, const std::string& sql, std::vector<Parameter> params, Reader reader) {
    ++under_way_;
    Query query{.commands = {{.text = sql, .params = std::move(params)}},
                .done = [self = shared_from_this(), check = std::move(check), reader = std::move(reader)](
                            const Outcome& outcome, const Results& results) {
                  self->read(check, reader, outcome, results);
                  self->answered();
                }};
    commands_.run(std::move(query), deadline_, MissingSchema::refuse);
  }

  void read(const std::string& check, const Reader& reader, const Outcome& outcome, const Results& results) {
    if (outcome.problem == Problem::none) {
      if (answers_++ == 0) found_.round_trip = commands_.executor().now() - outcome.sent;
      return reader(results[0]);
    }
    const std::string why = unanswered_question(outcome.failure).detail;
    if (outcome.problem != Problem::refused) {
      if (unreachable_.empty()) unreachable_ = why;
    } else if (!check.empty()) {
      not_checked_.push_back({Severity::note, check, "cannot be checked: " + why});
    }
  }

  void read_server(const Rows& rows) {
    found_.version = rows.text(0, 0);
    found_.server_clock = rows.number(0, 1);
    found_.our_clock =
        std::chrono::floor<std::chrono::seconds>(commands_.executor().clock().wall_now().time_since_epoch()).count();
    found_.over_tcp = rows.flag(0, 2);
  }

  void read_settings(const Rows& rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) found_.settings[rows.text(i, 0)] = {rows.text(i, 1), rows.text(i, 2)};
  }

  void answered() {
    if (--under_way_ > 0) return;
    if (!unreachable_.empty()) return done_(std::vector<Finding>{{Severity::error, "server", unreachable_}});
    found_.server = commands_.server();
    std::vector<Finding> findings = server_findings(found_, commands_.options());
    std::vector<Finding> about_tables = table_findings(found_, commands_.options());
    std::move(about_tables.begin(), about_tables.end(), std::back_inserter(findings));
    std::move(not_checked_.begin(), not_checked_.end(), std::back_inserter(findings));
    done_(std::move(findings));
  }

  Commands& commands_;
  const Backend::Handler<std::vector<Finding>> done_;
  const TimePoint deadline_;
  int under_way_ = 0;
  int answers_ = 0;
  Examined found_;
  std::string unreachable_;
  std::vector<Finding> not_checked_;
};

}  // namespace

ServerQuestions server_questions() {
  return {
      .server = fill(about_server, {}),
      .settings = fill(about_settings, {}),
      .standbys = fill(about_standbys, {}),
      .connections = fill(about_connections, {}),
      .indexes = fill(about_indexes, {}),
  };
}

void diagnose(Commands& commands, Backend::Handler<std::vector<Finding>> done) {
  std::make_shared<Diagnosis>(commands, std::move(done))->start();
}

}  // namespace dlock::postgres
