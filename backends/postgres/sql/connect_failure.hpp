// What a failed attempt to connect means. No I/O.
#pragma once

#include <string>
#include <string_view>

#include <dlock/error.hpp>

namespace dlock::postgres {

// In which state an attempt to log in was when libpq gave it up. libpq's own complaints are translated and have no
// SQLSTATE, so what they mean is derived from this.
struct LoginState {
  enum class Stage {
    connecting,    // nothing was said about TLS or about the user yet
    offering_tls,  // the server is to say whether it has TLS
    tls_handshake,
    login,
  };
  Stage stage = Stage::connecting;
  bool encrypted = false;       // the login
  bool needs_password = false;  // the server asked for one, and there is none
  bool hung_up = false;         // the server's side had closed the connection
  std::string unread = {};      // what had come from the server just before, or the beginning of it
};

// `text` is libpq's, in its verbose form, which has the SQLSTATE in it. errc::unavailable where another attempt may
// succeed; errc::access_denied for credentials and certificates, errc::invalid_argument for a database that does not
// exist.
[[nodiscard]] Failure connect_failure(const std::string& endpoint, std::string_view text, const LoginState& state = {});

// The server, or one of those that were tried, has no connection left: SQLSTATE 53300.
[[nodiscard]] bool is_about_a_full_server(const Failure& why) noexcept;

// libpq's texts have several lines; messages of dlock have one.
[[nodiscard]] std::string in_one_line(std::string_view text);

}  // namespace dlock::postgres
