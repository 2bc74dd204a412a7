// TLS as a filter between plain text and what is on the network; it does no I/O of its own, so that sockets are treated
// alike with and without it. Where dlock is built without OpenSSL, making a TlsContext fails with errc::unsupported.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <dlock/error.hpp>
#include <dlock/spi/backend.hpp>
#include <dlock/spi/url.hpp>

namespace dlock::common {

struct TlsOptions {
  std::string ca_file;    // empty: the system's certificate authorities
  std::string cert_file;  // of the client; empty: none
  std::string key_file;
  std::string protocol;  // offered by ALPN: "h2"; empty: none
};

// Appended to a failure before anything arrived in TLS, if the port was found to answer without TLS.
inline constexpr std::string_view perhaps_no_tls = "; perhaps the server does not use TLS at this port";

// Appended to a failure without TLS before anything arrived, if the port was found to answer in TLS.
inline constexpr std::string_view perhaps_only_tls = "; perhaps this port speaks TLS only";

// Takes tls_ca, tls_cert and tls_key from the URL. nullopt: TLS is not wanted; then it refuses them, and names the
// schemes that they need. Throws Error(invalid_argument).
[[nodiscard]] std::optional<TlsOptions> take_tls_options(Url& url, bool wanted, const std::string& schemes);

// One connection. After a failure it is of no further use.
class TlsFilter {
 public:
  TlsFilter() = default;
  TlsFilter(const TlsFilter&) = delete;
  TlsFilter& operator=(const TlsFilter&) = delete;
  virtual ~TlsFilter() = default;

  // Begins or continues the handshake; then there may be output. True: it is complete.
  [[nodiscard]] virtual bool handshake() = 0;
  // Decrypts bytes from the network, and appends the plain text. False: failed.
  [[nodiscard]] virtual bool decrypt(std::string_view network, std::string& plain) = 0;
  // Appends the bytes for the network. Only after the handshake. False: failed.
  [[nodiscard]] virtual bool encrypt(std::string_view plain) = 0;
  // Moves the bytes to send to the end of `network`.
  virtual void take_output(std::string& network) = 0;
  // Why it failed; no code if it did not.
  [[nodiscard]] virtual const Failure& failure() const noexcept = 0;
};

// Certificates and keys, shared by the connections of a client. In tasks only.
class TlsContext {
 public:
  TlsContext() = default;
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  virtual ~TlsContext() = default;

  // The server must have a certificate for this host name or address. Reads the files again if they have changed, or if
  // a connection has failed since; if they cannot be used, the last good ones remain in use.
  [[nodiscard]] virtual std::unique_ptr<TlsFilter> filter(const std::string& host) const = 0;
};

// Receives the reason why changed files cannot be used, once for each reason.
using TlsWarning = std::function<void(Failure)>;
// The host outlives the handler.
[[nodiscard]] inline TlsWarning warn_at(BackendHost& host) {
  return [&host](Failure why) { host.warn({.name = "", .reason = std::move(why)}); };
}

// Throws Error(invalid_argument) naming the URL's parameter tls_ca, tls_cert or tls_key, and the file that cannot be
// used.
[[nodiscard]] std::shared_ptr<const TlsContext> make_tls_context(const TlsOptions& options, TlsWarning warn = nullptr);

}  // namespace dlock::common
