#include "backends/postgres/sql/lock_key.hpp"

namespace dlock::postgres {

LockKey lock_key(const Options& options, std::string_view name) {
  const AdvisoryKey key = advisory_key(options.key, options.schema, name);
  return {key.space, key_parameter(key, name)};
}

std::string token_row(const Options& options, std::string_view name) {
  const bool needs_key = options.key.kind != KeyScheme::Kind::sha256;
  return token_row(options.key, needs_key ? advisory_key(options.key, options.schema, name) : AdvisoryKey(), name);
}

AdvisorySql::AdvisorySql(const Options& options) {
  using KeySpace = AdvisoryKey::KeySpace;
  const auto only = space_of(options.key);
  for (const KeySpace space : {KeySpace::bigint, KeySpace::pair, KeySpace::server}) {
    if (only ? space != *only : space == KeySpace::server) continue;
    by_space_.emplace(space, advisory_statements(options.schema, options.durability, space));
  }
}

}  // namespace dlock::postgres
