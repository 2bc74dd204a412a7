// Classifies the ends of calls.
#pragma once

#include <cstdint>
#include <string>

#include <dlock/error.hpp>

#include "backends/etcd/wire/grpc.hpp"

namespace dlock::etcd {

enum class Outcome : std::uint8_t {
  success,
  unavailable,   // of this member; a different one may serve
  unauthorized,  // the member does not know the token any more: log in again, then repeat the call
  no_lease,      // the session's lease has expired
  refused,       // a repeated call would be refused, too
  overloaded,    // a later call may succeed, once an administrator has acted
};

[[nodiscard]] Outcome outcome_of(const GrpcStatus& status);
// errc::ambiguous if the call may have had an effect, or may still have one. errc::lost for Outcome::no_lease.
// endpoint: in front of the message.
[[nodiscard]] Failure to_failure(const GrpcStatus& status, const std::string& endpoint);
// Whether a login was refused because authentication is switched off.
[[nodiscard]] bool is_without_logins(const GrpcStatus& status);

}  // namespace dlock::etcd
