#include "backends/postgres/sql/lock_key.hpp"

namespace dlock::postgres {

LockKey lock_key(const Options& options, std::string_view name, Space kind) {
  const AdvisoryKey key = advisory_key(options.key, options.schema, name, kind);
  return {key.space, key_parameter(key, name), kind};
}

std::string token_row(const Options& options, std::string_view name) {
  const bool needs_key = options.key.kind != KeyScheme::Kind::sha256;
  return token_row(options.key, needs_key ? advisory_key(options.key, options.schema, name) : AdvisoryKey(), name);
}

const AdvisoryStatements& AdvisorySql::of(AdvisoryKey::KeySpace space, Space kind) const {
  const auto found = made_.find({space, kind});
  if (found != made_.end()) return found->second;
  return made_.emplace(std::pair(space, kind), advisory_statements(options_.schema, options_.durability, space, kind))
      .first->second;
}

}  // namespace dlock::postgres
