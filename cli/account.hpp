// The outcome of one attempt to take a lock, and of what was done under it.
#pragma once

#include <dlock/lock_kind.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/json.hpp"

namespace dlock::cli {

struct Account {
  enum class Result {
    ran,          // the command ran under the lock until it ended; hold: the lock was held as long as requested
    conflict,     // another client held the lock
    interrupted,  // a signal ended the wait
    lost,         // the lock was lost while it was in use
    failed        // the service was unreachable, the command could not be run, or dlock failed
  };

  Result result = Result::failed;
  int status = 0;                                     // that dlock exits with
  std::optional<int> command_status = {};             // of a command that was started
  std::vector<std::uint64_t> tokens = {};             // in the order of the names; empty: never held
  std::chrono::nanoseconds waited = {};               // until the lock was granted, or the wait ended
  std::optional<std::chrono::nanoseconds> held = {};  // from the grant until it was freed, or known to be lost
  std::string reason = {};                            // why the result is not `ran`

  // Enters the result.
  void conclude(Result how, int with_status, std::string why = {});
  // Enters a failure by this exception.
  void fail(const std::exception& error);
};

[[nodiscard]] std::string_view to_string(Account::Result result) noexcept;

// To the millisecond: more digits would be of the clock, not of the lock.
[[nodiscard]] double seconds(std::chrono::nanoseconds duration);

// For --json of "dlock run".
[[nodiscard]] Json to_json(const Account& account, const std::vector<std::string>& names, LockKind kind);

}  // namespace dlock::cli
