// Texts for people.
#pragma once

#include <dlock/lock_kind.hpp>

#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::cli {

// "28.1 s", "250 ms", "3 min 20 s".
[[nodiscard]] std::string for_people(std::chrono::nanoseconds duration);

// "a", "b" and "c", each in quotation marks.
[[nodiscard]] std::string quoted(const std::vector<std::string>& names);

// The word that `word` was most likely meant to be; empty: none.
[[nodiscard]] std::string most_like(std::string_view word, const std::vector<std::string>& words);

// The kind of a lock in one word, as in --kind and DLOCK_KIND.
[[nodiscard]] std::string_view kind_word(LockKind kind) noexcept;
inline constexpr std::array every_kind{LockKind::lock, LockKind::read_write, LockKind::semaphore, LockKind::election};

// The meaning of a capability to its users, in one sentence without a full stop: of "scope", "lease" or "fencing", by
// to_string()'s word for it.
[[nodiscard]] std::string_view explain(std::string_view guarantee, std::string_view word) noexcept;

// One line about the service behind a URL scheme.
[[nodiscard]] std::string_view describe_scheme(std::string_view scheme) noexcept;

}  // namespace dlock::cli
