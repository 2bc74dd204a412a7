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
  std::optional<std::uint64_t> rank = std::nullopt;  // waiters ahead; nullopt: not in the queue
  bool joined = false;                               // not in the queue before this request
  std::uint64_t ticket = 0;                          // the place in the queue, if there is one
  // The lock is free, and the server has more dead waiters than it removes in one call: repeat the request.
  bool more = false;
  // Refused: the semaphore is in use with this number of permits.
  std::optional<std::uint32_t> other_permits = std::nullopt;
};

struct ReleaseAnswer {
  enum class Was { ours, somebody_elses, free } was;
  bool may_publish = true;
  bool more = false;  // as above
};

// Each answers errc::protocol for a malformed reply, and for an error reply its meaning.
[[nodiscard]] Result<AcquireAnswer> read_acquire(const Reply& reply);
[[nodiscard]] Result<bool> read_renew(const Reply& reply);
[[nodiscard]] Result<bool> read_forget(const Reply& reply);
[[nodiscard]] Result<ReleaseAnswer> read_release(const Reply& reply);
// waiters: only if they can be counted.
[[nodiscard]] Result<LockInfo> read_inspect(const Reply& reply, const std::string& name,
                                            LockKind kind = LockKind::lock);

// Fewer replicas than wanted have a write.
[[nodiscard]] Failure too_few_replicas(std::uint64_t replicas, std::uint64_t wanted, const std::string& write);

}  // namespace dlock::redis
