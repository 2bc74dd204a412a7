// The options in the URL and the configuration of a client.
//
//   etcd://[user:password@]h1:2379,h2,h3[?prefix=...&names=escaped|verbatim&session_ttl=...&password_file=...]
//   etcds://...[&tls_ca=...&tls_cert=...&tls_key=...]
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/common/host.hpp"
#include "backends/common/password_file.hpp"
#include "backends/common/tls.hpp"

namespace dlock::etcd {

struct Options {
  std::vector<common::Host> hosts;
  std::string user;                                   // empty: no login
  std::string password;                               // never shown
  std::optional<common::PasswordFile> password_file;  // instead of the password
  std::string prefix = "dlock/";
  bool verbatim = false;  // keys have names unchanged, as those of other programs
  std::chrono::seconds session_ttl{};
  std::optional<common::TlsOptions> tls;

  std::string holder;
  std::chrono::nanoseconds response_timeout{};
  std::chrono::nanoseconds connect_timeout{};

  // "h1:2379,h2:2379", for messages.
  [[nodiscard]] std::string endpoint() const { return common::to_string(hosts); }
};

// Throws Error(invalid_argument), which names the wrong part.
[[nodiscard]] Options parse_options(const BackendConfig& config);

}  // namespace dlock::etcd
