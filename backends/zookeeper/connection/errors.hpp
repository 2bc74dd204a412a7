// What the codes of ZooKeeper's client library mean.
#pragma once

#include <string>
#include <string_view>

#include <dlock/error.hpp>

#include "backends/zookeeper/connection/handle.hpp"

namespace dlock::zookeeper {

[[nodiscard]] Problem problem_of(int code) noexcept;

// For the caller: "<subject>: <the library's text> (<its name for the code>)". Empty for ZOK.
[[nodiscard]] Failure failure_of(int code, std::string_view subject);

}  // namespace dlock::zookeeper
