// The advisory lock of a name as sessions keep their books on it, and the statements for it.
//
// A session that has an advisory lock gets it again when it asks again, and would have to unlock it twice, so a client
// has to know what its sessions have. It cannot know which names are the same lock where the server computes the key:
// such names are kept apart by the names themselves. Should two of them be the same lock (that takes a collision of 64
// bits), one client may hold both at a time, and the lock is free for others when both are released.
#pragma once

#include <compare>
#include <map>
#include <string>
#include <string_view>

#include "backends/postgres/options.hpp"
#include "backends/postgres/sql/advisory_key.hpp"
#include "backends/postgres/sql/statements.hpp"

namespace dlock::postgres {

struct LockKey {
  AdvisoryKey::KeySpace space = AdvisoryKey::KeySpace::bigint;
  std::string parameter = {};  // key_parameter()

  friend auto operator<=>(const LockKey&, const LockKey&) = default;
};

[[nodiscard]] LockKey lock_key(const Options& options, std::string_view name);
// token_row() of that lock.
[[nodiscard]] std::string token_row(const Options& options, std::string_view name);

// The statements for each space that the names of a client may lead to. They stay where they are.
class AdvisorySql {
 public:
  explicit AdvisorySql(const Options& options);
  [[nodiscard]] const AdvisoryStatements& of(AdvisoryKey::KeySpace space) const { return by_space_.at(space); }

 private:
  std::map<AdvisoryKey::KeySpace, AdvisoryStatements> by_space_;
};

}  // namespace dlock::postgres
