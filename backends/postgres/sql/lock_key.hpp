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
#include <tuple>

#include "backends/postgres/options.hpp"
#include "backends/postgres/sql/advisory_key.hpp"
#include "backends/postgres/sql/statements.hpp"

namespace dlock::postgres {

struct LockKey {
  AdvisoryKey::KeySpace space = AdvisoryKey::KeySpace::bigint;
  std::string parameter = {};  // key_parameter()
  // How it is wanted or had, and where its token is; says nothing about which lock of the server's it is.
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
// token_row() of that lock.
[[nodiscard]] std::string token_row(const Options& options, std::string_view name);

// The statements for each space of keys, and each kind of locks. They stay where they are. In tasks only.
class AdvisorySql {
 public:
  explicit AdvisorySql(const Options& options) : options_(options) {}
  [[nodiscard]] const AdvisoryStatements& of(AdvisoryKey::KeySpace space, LockKind kind = LockKind::lock,
                                             Mode mode = Mode::exclusive) const;
  [[nodiscard]] const AdvisoryStatements& of(const LockKey& key) const { return of(key.space, key.kind, key.mode); }

 private:
  const Options& options_;
  mutable std::map<std::tuple<AdvisoryKey::KeySpace, LockKind, Mode>, AdvisoryStatements>
      made_;  // those that were asked for
};

}  // namespace dlock::postgres
