#include "backends/common/tls.hpp"

#include <string_view>
#include <utility>

namespace dlock::common {

std::optional<TlsOptions> take_tls_options(Url& url, bool wanted, const std::string& schemes) {
  TlsOptions tls;
  const auto take = [&](std::string_view key, std::string& into) {
    auto value = url.take(key);
    if (!value) return;
    const std::string part = "parameter \"" + std::string(key) + "\"";
    if (!wanted) throw Error(errc::invalid_argument, part + " needs " + schemes);
    if (value->empty()) throw Error(errc::invalid_argument, part + " is empty, but must name a file");
    into = *std::move(value);
  };
  take("tls_ca", tls.ca_file);
  take("tls_cert", tls.cert_file);
  take("tls_key", tls.key_file);
  if (tls.cert_file.empty() != tls.key_file.empty()) {
    throw Error(errc::invalid_argument, "tls_cert and tls_key must be given together");
  }
  if (!wanted) return std::nullopt;
  return tls;
}

}  // namespace dlock::common
