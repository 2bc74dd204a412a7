// What a failed attempt to connect means. No I/O.
#pragma once

#include <string>
#include <string_view>

#include <dlock/error.hpp>

namespace dlock::postgres {

// `text` is libpq's, in its verbose form, which has the SQLSTATE in it. errc::unavailable where another attempt may
// succeed; errc::access_denied for credentials and certificates, errc::invalid_argument for a database that does not
// exist.
[[nodiscard]] Failure connect_failure(const std::string& endpoint, std::string_view text);

// The server, or one of those that were tried, has no connection left: SQLSTATE 53300.
[[nodiscard]] bool is_about_a_full_server(const Failure& why) noexcept;

// libpq's texts have several lines; messages of dlock have one.
[[nodiscard]] std::string in_one_line(std::string_view text);

}  // namespace dlock::postgres
