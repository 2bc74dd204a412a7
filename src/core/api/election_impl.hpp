// An election.
#pragma once

#include <memory>
#include <string>

#include "core/client/client_core.hpp"

namespace dlock::detail {

struct ElectionImpl {
  const std::shared_ptr<ClientCore> core;
  const std::string name;
};

}  // namespace dlock::detail
