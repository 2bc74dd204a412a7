#include "backends/postgres/schema/layout.hpp"

#include <utility>
#include <vector>

#include "backends/postgres/schema/schema_state.hpp"
#include "backends/postgres/sql/identifier.hpp"

namespace dlock::postgres {

namespace {

// Each change is a transaction in one query: no transaction is open between queries.
//
//   look -> read the version -> create -> look ...
//                            -> record the version -> the end
//                            -> the end
class Steps final : public SchemaSteps {
 public:
  Steps(const std::string& schema, Durability durability)
      : schema_(schema), durability_(durability), statements_(schema_statements(schema)) {}

  [[nodiscard]] Step look(bool first) override {
    if (first) made_.clear();
    created_ = created_ && !first;
    return ask({rights(), tables()}, false, &Steps::looked);
  }
  // They fail while another client keeps the lock for seconds, or creates tables without the lock.
  [[nodiscard]] int most_attempts() const noexcept override { return 10; }

 private:
  using Reader = Step (Steps::*)(const Results&);

  // --- Looking ---

  // Reads no table of an untrusted owner: that might run code of the owner.
  [[nodiscard]] Step looked(const Results& results) {
    state_ = read_schema_state(schema_, results[0], results[1]);
    if (const auto problem = state_.problem_with_planted()) return fail(*problem);
    if (const auto problem = state_.problem_with_owners()) return fail(*problem);
    const TableState* const meta = state_.table("meta");
    const bool readable = meta != nullptr && meta->may_select && state_.may_use;
    if (readable && !SchemaState{.schema = schema_, .tables = {*meta}}.problem_with_tables()) {
      return ask({version()}, false, &Steps::read_version);
    }
    return decide(meta != nullptr && !meta->may_select);
  }

  [[nodiscard]] Step read_version(const Results& results) {
    const auto version = results[0].number(0, 0);
    if (version) {
      if (const auto problem = problem_with_version(schema_, *version)) return fail(*problem);
    }
    return decide(version.has_value());
  }

  [[nodiscard]] Step decide(bool has_version) {
    if (const auto problem = state_.problem_with_tables()) return fail(*problem);
    if (const auto problem = state_.problem_with_rights()) return fail(*problem);
    const auto missing = state_.missing();
    if (!state_.exists || !missing.empty()) {
      if (!created_) return create();
      return fail(
          {errc::invalid_argument, qualified(schema_, missing.front()) + " is not a table; use another schema"});
    }
    if (!has_version) return record();
    return {.end = made_};
  }

  // --- Changing ---

  // Reads the state behind the lock: from then on no other client makes tables.
  [[nodiscard]] Step create() {
    std::vector<Command> commands = texts(creation(schema_, durability_, !state_.exists));
    (void)commands.insert(commands.begin() + first_change, {rights(), tables()});
    return ask(std::move(commands), true, &Steps::created);
  }

  [[nodiscard]] Step created(const Results& results) {
    const SchemaState before = read_schema_state(schema_, results[first_change], results[first_change + 1]);
    made_ = before.additions(durability_);
    created_ = true;
    return look(false);
  }

  [[nodiscard]] Step record() {
    std::vector<Command> commands = texts(recording(schema_));
    (void)commands.insert(commands.end() - 1, version());
    return ask(std::move(commands), true, &Steps::recorded);
  }

  [[nodiscard]] Step recorded(const Results& results) {
    const auto version = results[first_change + 1].number(0, 0);
    if (const auto problem = problem_with_version(schema_, version.value_or(0))) return fail(*problem);
    return {.end = made_};
  }

  // --- Asking ---

  [[nodiscard]] Command rights() const { return {.statement = &statements_.rights, .params = {schema_}}; }
  [[nodiscard]] Command tables() const { return {.statement = &statements_.tables, .params = {schema_}}; }
  [[nodiscard]] Command version() const { return {.statement = &statements_.version}; }

  [[nodiscard]] static std::vector<Command> texts(std::vector<std::string> statements) {
    std::vector<Command> commands;
    commands.reserve(statements.size());
    for (std::string& sql : statements) commands.push_back({.text = std::move(sql)});
    return commands;
  }

  [[nodiscard]] Step ask(std::vector<Command> commands, bool blocks, Reader reader) {
    return {.commands = std::move(commands),
            .read = [this, reader](const Results& results) { return (this->*reader)(results); },
            .blocks = blocks};
  }
  [[nodiscard]] static Step fail(Failure why) { return {.end = std::move(why)}; }

  const std::string schema_;
  const Durability durability_;
  const SchemaStatements statements_;
  SchemaState state_;
  MadeTables made_;
  bool created_ = false;
};

}  // namespace

std::unique_ptr<SchemaSteps> schema_steps(const std::string& schema, Durability durability) {
  return std::make_unique<Steps>(schema, durability);
}

}  // namespace dlock::postgres
