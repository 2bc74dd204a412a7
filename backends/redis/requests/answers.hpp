// The replies of the scripts, read field by field: anything unexpected is refused, never guessed. No I/O.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <dlock/spi/backend.hpp>

#include "backends/redis/connection/reply.hpp"

namespace dlock::redis {

struct AcquireAnswer {
  bool granted = false;
  FencingToken token = {};  // if granted
  // If not: when the lock expires; nullopt if it never does or that is unknown.
  std::optional<std::chrono::milliseconds> free_in = std::nullopt;
  std::optional<std::uint64_t> rank = std::nullopt;  // how many are before us; nullopt: we do not queue
  bool joined = false;                               // we were not in the queue until now
  std::uint64_t ticket = 0;                          // our place in the queue, if we are in it
  // The lock is free, and the server has more dead waiters than it removes in one call: the next call goes on.
  bool more = false;
  // Refused: others use the semaphore with so many permits.
  std::optional<std::uint32_t> other_permits = std::nullopt;
};

struct ReleaseAnswer {
  enum class Was { ours, somebody_elses, free } was;
  bool may_publish = true;
  bool more = false;  // as above
};

// Each answers errc::protocol for a reply of another shape, and what an error reply means.
[[nodiscard]] Result<AcquireAnswer> read_acquire(const Reply& reply);
[[nodiscard]] Result<bool> read_renew(const Reply& reply);
[[nodiscard]] Result<bool> read_forget(const Reply& reply);
[[nodiscard]] Result<ReleaseAnswer> read_release(const Reply& reply);
// waiters is left out unless we can count them.
[[nodiscard]] Result<LockInfo> read_inspect(const Reply& reply, const std::string& name,
                                            LockKind kind = LockKind::lock);

// Fewer replicas than wanted have a write.
[[nodiscard]] Failure too_few_replicas(std::uint64_t replicas, std::uint64_t wanted, const std::string& write);

}  // namespace dlock::redis
