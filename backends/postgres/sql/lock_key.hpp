// The advisory lock of a name in the records of a client, and the statements for it.
//
// A session that has an advisory lock gets it again if it asks again, and then has to unlock it twice, so a client
// records what its sessions have. If the server computes the keys, the client cannot know which names share a key: then
// the names themselves are recorded. If two of them do share a key (a collision of 64 bits), one client may hold both
// at a time, and the lock is free for other clients once both are released.
#pragma once

#include <compare>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "backends/postgres/options.hpp"
#include "backends/postgres/sql/advisory_key.hpp"
#include "backends/postgres/sql/statements.hpp"

namespace dlock::postgres {

struct LockKey {
  AdvisoryKey::KeySpace space = AdvisoryKey::KeySpace::bigint;
  std::string parameter = {};  // key_parameter()
  // They belong to a request or a hold, and to its token. The lock of the server depends on neither.
  Mode mode = Mode::exclusive;
  LockKind kind = LockKind::lock;

  friend auto operator<=>(const LockKey& a, const LockKey& b) {
    return std::tie(a.space, a.parameter) <=> std::tie(b.space, b.parameter);
  }
  friend bool operator==(const LockKey& a, const LockKey& b) {
    return std::tie(a.space, a.parameter) == std::tie(b.space, b.parameter);
  }
};

[[nodiscard]] LockKey lock_key(const Options& options, std::string_view name, LockKind kind = LockKind::lock,
                               Mode mode = Mode::exclusive);
[[nodiscard]] inline std::string token_row(const Options& options, std::string_view name) {
  return token_row(options.key, name);
}

// The statements for each space of keys, kind of locks and mode, made at their first use. Their addresses stay valid.
// In tasks only.
class AdvisorySql {
 public:
  explicit AdvisorySql(const Options& options) : options_(options) {}
  [[nodiscard]] const AdvisoryStatements& of(AdvisoryKey::KeySpace space, LockKind kind = LockKind::lock,
                                             Mode mode = Mode::exclusive) const;
  [[nodiscard]] const AdvisoryStatements& of(const LockKey& key) const { return of(key.space, key.kind, key.mode); }

 private:
  const Options& options_;
  mutable std::map<std::tuple<AdvisoryKey::KeySpace, LockKind, Mode>, AdvisoryStatements> made_;
};

}  // namespace dlock::postgres
