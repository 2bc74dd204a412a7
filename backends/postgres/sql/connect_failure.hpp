// The meaning of a failed attempt to connect. No I/O.
#pragma once

#include <string>
#include <string_view>

#include <dlock/error.hpp>

namespace dlock::postgres {

// The state of a login when libpq gave it up. libpq translates its own messages, and they have no SQLSTATE, so their
// meaning is derived from this.
struct LoginState {
  enum class Stage {
    connecting,    // before TLS and the user name
    offering_tls,  // the server has not answered yet whether it has TLS
    tls_handshake,
    login,
  };
  Stage stage = Stage::connecting;
  bool encrypted = false;
  bool needs_password = false;  // the server requested one, and there is none
  bool hung_up = false;         // the server had closed the connection
  std::string unread = {};      // the beginning of the bytes that had arrived just before
};

// `text` is libpq's, in its verbose form, which contains the SQLSTATE. errc::unavailable if another attempt may
// succeed; errc::access_denied for credentials and certificates, errc::invalid_argument for a database that does not
// exist.
[[nodiscard]] Failure connect_failure(const std::string& endpoint, std::string_view text, const LoginState& state = {});

// The server, or one of those that were tried, has no connection left: SQLSTATE 53300.
[[nodiscard]] bool is_about_a_full_server(const Failure& why) noexcept;

// libpq's texts have several lines; messages of dlock have one.
[[nodiscard]] std::string in_one_line(std::string_view text);

}  // namespace dlock::postgres
