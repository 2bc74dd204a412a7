// What the ends of calls mean for their callers.
#pragma once

#include <string>

#include <dlock/error.hpp>

#include "backends/etcd/wire/grpc.hpp"

namespace dlock::etcd {

enum class Trouble {
  none,          // all is well
  unavailable,   // the member cannot do it; another may
  unauthorized,  // the token is not known any more: log in again, then repeat
  no_lease,      // of the session
  refused,       // trying again does not help
  overloaded,    // trying again later may: an administrator can change it
};

// Of a login: the members have authentication switched off.
[[nodiscard]] bool is_without_logins(const GrpcStatus& status);
[[nodiscard]] Trouble trouble_in(const GrpcStatus& status);
// errc::ambiguous where the call may have been carried out, or may still be; errc::lost where the session's lease is
// not known. endpoint: in front of the message.
[[nodiscard]] Failure to_failure(const GrpcStatus& status, const std::string& endpoint);

}  // namespace dlock::etcd
