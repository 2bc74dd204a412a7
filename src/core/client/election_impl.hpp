// What an election consists of.
#pragma once

#include <memory>
#include <string>

#include "core/shard/shard.hpp"

namespace dlock::detail {

struct ElectionImpl {
  const std::shared_ptr<Shard> shard;
  const std::string name;
};

}  // namespace dlock::detail
