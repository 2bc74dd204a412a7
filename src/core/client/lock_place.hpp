// What a lock is to its client: what to ask for, and the shard that its name belongs to.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <dlock/error.hpp>
#include <dlock/lease.hpp>
#include <dlock/lock_kind.hpp>
#include <dlock/options.hpp>

#include "core/shard/acquisition.hpp"
#include "core/shard/shard.hpp"

namespace dlock::detail {

struct LockPlace {
  // Waits for the end of an acquire. An empty lease means that `failure` has a code.
  [[nodiscard]] Lease acquire(Mode mode, const AcquireOptions& options, Failure& failure) const;
  [[nodiscard]] Target target(Mode mode = Mode::exclusive) const noexcept { return {name, kind, mode, permits, value}; }

  const std::shared_ptr<Shard> shard;
  const std::string name;
  const LockKind kind = LockKind::lock;
  const std::uint32_t permits = 1;
  const std::string value = {};
};

}  // namespace dlock::detail
