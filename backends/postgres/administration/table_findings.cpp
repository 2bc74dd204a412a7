// Findings about dlock's tables.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "backends/postgres/administration/findings.hpp"
#include "backends/postgres/schema/layout.hpp"
#include "backends/postgres/schema/schema_state.hpp"
#include "backends/postgres/sql/identifier.hpp"
#include "util/names.hpp"

namespace dlock::postgres {

namespace {

using Severity = Finding::Severity;

// Autovacuum starts after a thousand dead rows, once a minute.
constexpr std::int64_t many_dead = 100'000;
constexpr std::int64_t dead_per_live = 10;
constexpr std::int64_t enough_updates = 1000;
constexpr std::int64_t percent_in_place = 80;
constexpr std::int64_t large = 64 << 20;
constexpr std::int64_t bytes_per_row = 16 << 10;

std::vector<std::string_view> tables_of(Strategy strategy) {
  if (strategy == Strategy::table) return {"lease", "lease_rw", "lease_sem", "lease_elect"};
  if (strategy == Strategy::optimistic) return {"optimistic", "optimistic_elect"};
  if (strategy == Strategy::for_update) return {"row_lock", "row_token"};
  return {"fence", "fence_rw", "fence_elect"};
}

// A schema of the first dlock lacks it, and can be used for plain locks.
bool is_younger(std::string_view name) {
  return std::any_of(layout().begin(), layout().end(),
                     [&](const TableDefinition& each) { return each.name == name && !each.since_first; });
}

std::string in_words(std::int64_t bytes) {
  if (bytes < 10 << 20) return std::to_string(bytes >> 10) + " kB";
  return std::to_string(bytes >> 20) + " MB";
}

class Judge {
 public:
  Judge(const Examined& examined, const Options& options)
      : examined_(examined),
        options_(options),
        ours_(tables_of(options.strategy)),
        state_(read_schema_state(options.schema, examined.answer("rights"), examined.answer("tables"))) {
    std::erase_if(ours_, [&](std::string_view name) { return is_younger(name) && state_.table(name) == nullptr; });
  }

  std::vector<Finding> all() {
    const bool complete = judge_schema();
    if (!state_.tables.empty()) judge_owners();
    if (!complete) return std::move(findings_);
    judge_permissions();
    judge_persistence();
    judge_indexes();
    judge_health();
    return std::move(findings_);
  }

 private:
  void add(Severity severity, std::string check, std::string message) {
    findings_.push_back({severity, std::move(check), std::move(message)});
  }
  [[nodiscard]] bool is_ours(std::string_view table) const {
    return std::find(ours_.begin(), ours_.end(), table) != ours_.end();
  }
  [[nodiscard]] std::string quoted(std::string_view table) const { return qualified(options_.schema, table); }

  // True: the other checks can read the tables.
  bool judge_schema() {
    const std::string named = "schema " + quote_identifier(options_.schema);
    const auto version = examined_.answer("version").number(0, 0).value_or(schema_version);
    auto problem = problem_with_version(options_.schema, version);
    if (!problem) problem = state_.problem_with_tables();
    if (!problem) problem = state_.problem_with_rights();
    if (problem) {
      add(Severity::error, "schema", problem->detail);
      return false;
    }
    const auto missing = state_.missing();
    if (!state_.exists || !missing.empty()) {
      add(Severity::note, "schema",
          named + (state_.exists ? " is not complete" : " does not exist") +
              "; \"dlock init\" creates it, and so does the first use of a lock by this role");
      return state_.exists && std::all_of(missing.begin(), missing.end(), is_younger);
    }
    add(Severity::ok, "schema", named + ", version " + std::to_string(schema_version));
    return true;
  }

  void judge_owners() {
    if (const auto problem = state_.problem_with_planted()) {
      return add(Severity::error, "owners", problem->detail);
    }
    if (const auto problem = state_.problem_with_owners()) {
      return add(Severity::warning, "owners", problem->detail);
    }
    std::string owners;
    for (const TableState& table : state_.tables) {
      const std::string owner = util::quoted(table.owner);
      if (owners.find(owner) == std::string::npos) owners += (owners.empty() ? "" : ", ") + owner;
    }
    add(Severity::ok, "owners", "dlock's tables belong to " + owners + ", and have no additions that are not dlock's");
  }

  void judge_permissions() {
    std::string lacking;
    for (const std::string_view name : ours_) {
      const TableState* const table = state_.table(name);
      if (table != nullptr && table->may_select && table->may_insert && table->may_update) continue;
      lacking += (lacking.empty() ? "" : ", ") + quoted(name);
    }
    if (lacking.empty()) return add(Severity::ok, "permissions", "this role may do all that locks need");
    add(Severity::error, "permissions",
        "this role may not read and write " + lacking + "; it needs: " + needed_grants(options_.schema));
  }

  void judge_persistence() {
    const bool wanted = options_.durability == Durability::unlogged;
    for (const std::string_view name : ours_) {
      const TableState* const table = state_.table(name);
      if (table == nullptr || table->unlogged == wanted) continue;
      const std::string asked = "durability=" + std::string(to_string(options_.durability));
      const std::string says = wanted ? " is logged, although " + asked + ": that is safe, but slower"
                                      : " is unlogged: a crash of the server loses all locks, although " + asked;
      add(wanted ? Severity::note : Severity::warning, "tables",
          quoted(name) + says + "; ALTER TABLE " + quoted(name) + (wanted ? " SET UNLOGGED" : " SET LOGGED"));
    }
  }

  void judge_indexes() {
    const Rows& indexes = examined_.answer("indexes");
    for (std::size_t i = 0; i < indexes.size(); ++i) {
      if (!is_ours(indexes.text(i, 0))) continue;
      add(Severity::warning, "indexes",
          quoted(indexes.text(i, 0)) + " has an index that is not dlock's, " + quoted(indexes.text(i, 1)) +
              ": it keeps rows from being updated in place, so the table grows and locks get slower; drop it");
    }
  }

  void judge_health() {
    const Rows& health = examined_.answer("health");
    for (std::size_t i = 0; i < health.size(); ++i) {
      if (is_ours(health.text(i, 0))) judge_health(health, i);
    }
  }

  void judge_health(const Rows& health, std::size_t row) {
    const auto number = [&](std::size_t column) { return health.number(row, column).value_or(0); };
    const std::string table = quoted(health.text(row, 0)) + ": ";
    const std::int64_t live = number(1);
    const std::int64_t dead = number(2);
    const std::int64_t updates = number(3);
    const std::int64_t in_place = updates > 0 ? number(4) * 100 / updates : 100;
    const std::int64_t bytes = number(5);
    const std::size_t before = findings_.size();
    const std::string rows = std::to_string(live) + " rows";
    if (dead > many_dead && dead > dead_per_live * live) {
      add(Severity::warning, "table health",
          table + std::to_string(dead) + " dead rows beside " + std::to_string(live) +
              " live ones: autovacuum does not keep up, or a long-running transaction prevents it");
    }
    if (updates >= enough_updates && in_place < percent_in_place) {
      add(Severity::warning, "table health",
          table + "only " + std::to_string(in_place) +
              " % of its updates were made in place: one index too many, no room in its pages (fillfactor 50), or a "
              "long-running transaction");
    }
    if (bytes > large && bytes / std::max<std::int64_t>(live, 1) > bytes_per_row) {
      add(Severity::warning, "table health",
          table + in_words(bytes) + " for about " + rows +
              ": it is bloated; VACUUM FULL shrinks it, but no client can acquire or renew a lock meanwhile");
    }
    if (findings_.size() > before) return;
    std::string message = table + "about " + rows + " in " + in_words(bytes);
    if (updates > 0) message += ", " + std::to_string(in_place) + " % of updates in place";
    add(Severity::ok, "table health", std::move(message));
  }

  const Examined& examined_;
  const Options& options_;
  std::vector<std::string_view> ours_;
  const SchemaState state_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> table_findings(const Examined& examined, const Options& options) {
  if (!examined.knows("rights") || !examined.knows("tables")) return {};
  return Judge(examined, options).all();
}

}  // namespace dlock::postgres
