// A lock of a client: what an acquire asks for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <dlock/lock_kind.hpp>

#include "core/client/acquisition.hpp"
#include "core/client/client_core.hpp"

namespace dlock::detail {

struct LockPlace {
  [[nodiscard]] Target target(Mode mode = Mode::exclusive) const noexcept { return {name, kind, mode, permits, value}; }

  const std::shared_ptr<ClientCore> core;
  const std::string name;
  const LockKind kind = LockKind::lock;
  const std::uint32_t permits = 1;
  const std::string value = {};
};

}  // namespace dlock::detail
