// The statements of the floors, written out: the same as dlock's, which a test sees to.
#pragma once

#include <string>
#include <string_view>

namespace dlock::bench {

struct LockStatements {
  std::string acquire;
  std::string release;
};

// $1 name, $2 owner, $3 holder, $4 lease in ms ("optimistic": $5 and $6, owner and version that stood still); release:
// $1 name, $2 owner, $3 channel.
[[nodiscard]] LockStatements table_floor_statements(std::string_view schema);
[[nodiscard]] LockStatements optimistic_floor_statements(std::string_view schema);
// $1 key, $2 name, $3 holder; release: $1 key.
[[nodiscard]] LockStatements advisory_floor_statements(std::string_view schema);

struct ForUpdateFloorStatements {
  std::string ensure;  // $1 name
  std::string begin;
  std::string try_lock;  // $1 name, $2 holder
  std::string commit;
};
[[nodiscard]] ForUpdateFloorStatements for_update_floor_statements(std::string_view schema);

// In double quotes, for use in SQL.
[[nodiscard]] std::string quoted_identifier(std::string_view name);

}  // namespace dlock::bench
