#include "backends/common/tls.hpp"

namespace dlock::common {

std::shared_ptr<const TlsContext> make_tls_context(const TlsOptions& /*options*/, TlsWarning /*warn*/) {
  throw Error(errc::unsupported, "TLS: this build of dlock does not support it, because OpenSSL was not found");
}

}  // namespace dlock::common
