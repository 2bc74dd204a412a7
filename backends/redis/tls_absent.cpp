#include "backends/redis/tls.hpp"

namespace dlock::redis {

std::shared_ptr<const TlsContext> make_tls_context(const TlsOptions& /*options*/) {
  throw Error(errc::unsupported, "rediss://: this build of dlock has no TLS, because OpenSSL was not found");
}

}  // namespace dlock::redis
