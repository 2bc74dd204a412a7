// The schemes that connect() knows.
#pragma once

#include <string>
#include <vector>

#include <dlock/client.hpp>

namespace dlock::detail {

// Throws Error(invalid_argument) naming the known schemes if this one is unknown. Any thread.
[[nodiscard]] BackendFactory find_backend(const std::string& scheme);

using RegisterFunction = void (*)(std::string scheme, BackendFactory factory);

// Registers the backends that were built into the library; defined next to them, in backends/.
void register_builtin_backends(RegisterFunction add);

}  // namespace dlock::detail
