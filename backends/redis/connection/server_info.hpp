// The server's INFO, read. No I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dlock::redis {

// The value of a "key:value" line; nullopt if there is none.
[[nodiscard]] std::optional<std::string_view> info_field(std::string_view info, std::string_view key);
[[nodiscard]] std::optional<std::uint64_t> info_number(std::string_view info, std::string_view key);

// What to tell a person if a server with this memory section may throw away locks.
[[nodiscard]] std::optional<std::string> eviction_danger(std::string_view info);

}  // namespace dlock::redis
