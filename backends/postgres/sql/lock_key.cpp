#include "backends/postgres/sql/lock_key.hpp"

namespace dlock::postgres {

LockKey lock_key(const Options& options, std::string_view name, LockKind kind, Mode mode) {
  const AdvisoryKey key = advisory_key(options.key, options.schema, name, kind);
  return {key.space, key_parameter(key, name), mode, kind};
}

const AdvisoryStatements& AdvisorySql::of(AdvisoryKey::KeySpace space, LockKind kind, Mode mode) const {
  const std::tuple which(space, kind, mode);
  const auto found = made_.find(which);
  if (found != made_.end()) return found->second;
  auto statements = advisory_statements(options_.schema, options_.durability, space, kind, mode);
  return made_.emplace(which, std::move(statements)).first->second;
}

}  // namespace dlock::postgres
