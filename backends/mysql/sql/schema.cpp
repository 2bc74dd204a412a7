#include "backends/mysql/sql/layout.hpp"

#include <utility>
#include <vector>

#include "util/names.hpp"

namespace dlock::mysql {

using sql::Results;
using sql::Rows;

namespace {

//   look -> read the version -> create, one statement after the other -> look ...
//                            -> the end
class Steps final : public sql::SchemaSteps {
 public:
  explicit Steps(const std::string& schema) : schema_(schema), statements_(schema_statements(schema)) {}

  [[nodiscard]] Step look(bool first) override {
    if (first) made_.clear();
    created_ = created_ && !first;
    return {.commands = {{.statement = &statements_.tables, .params = {schema_}}},
            .read = [this](const Results& results) { return looked(results.front()); },
            .blocks = true};
  }
  [[nodiscard]] Failure explain(Failure why) const override {
    if (why.code == errc::access_denied) why.detail += "; or run \"dlock init\" with a user that may create it";
    return why;
  }

 private:
  // New tables and columns may be there, from a newer dlock.
  [[nodiscard]] Step looked(const Rows& tables) {
    std::vector<std::string> missing;
    for (const TableDefinition& table : layout()) {
      std::size_t row = 0;
      while (row < tables.size() && tables.text(row, 0) != table.name) ++row;
      const std::string name = util::quoted(schema_ + "." + std::string(table.name));
      if (row == tables.size()) {
        missing.push_back("table " + name);
      } else if (!(tables.text(row, 1) + ",").starts_with(std::string(table.columns) + ",")) {
        return fail(errc::invalid_argument, "table " + name + " is not dlock's: it has the columns " +
                                                tables.text(row, 1) + " instead of " + std::string(table.columns) +
                                                "; use another schema");
      } else if (tables.text(row, 2) != "InnoDB") {
        return fail(errc::invalid_argument,
                    "table " + name + " has no transactions: its engine is " + tables.text(row, 2) + ", not InnoDB");
      }
    }
    if (missing.empty()) {
      return {.commands = {{.statement = &statements_.version}},
              .read = [this](const Results& results) { return check(results.front().number(0, 0)); },
              .blocks = true};
    }
    if (created_) return fail(errc::invalid_argument, missing.front() + " cannot be made; use another schema");
    made_ = std::move(missing);
    return create(creation(schema_, tables.empty()));
  }

  [[nodiscard]] Step check(std::optional<std::int64_t> version) {
    if (!version) return create(creation(schema_, false));
    if (*version == schema_version) return {.end = made_};
    return fail(errc::unsupported, "schema " + util::quoted(schema_) + " has version " + std::to_string(*version) +
                                       " of dlock's tables, and this is a dlock for version " +
                                       std::to_string(schema_version) + ": use a newer dlock, or another schema");
  }

  // The server commits before and after each.
  [[nodiscard]] Step create(std::vector<std::string> statements) {
    if (statements.empty()) {
      created_ = true;
      return look(false);
    }
    std::string first = std::move(statements.front());
    (void)statements.erase(statements.begin());
    return {.commands = {{.text = std::move(first)}},
            .read = [this, rest = std::move(statements)](const Results&) { return create(rest); },
            .blocks = true};
  }

  [[nodiscard]] static Step fail(errc code, std::string why) { return {.end = Failure{code, std::move(why)}}; }

  const std::string schema_;
  const SchemaStatements statements_;
  sql::MadeTables made_;
  bool created_ = false;
};

}  // namespace

std::unique_ptr<sql::SchemaSteps> schema_steps(const std::string& schema) {
  return std::make_unique<Steps>(schema);
}

}  // namespace dlock::mysql
