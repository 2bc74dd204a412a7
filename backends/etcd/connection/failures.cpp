#include "backends/etcd/connection/failures.hpp"

#include <string_view>

namespace dlock::etcd {

namespace {

bool says(const GrpcStatus& status, std::string_view words) {
  return status.message.find(words) != std::string::npos;
}

bool is_about_rights(const GrpcStatus& status) {
  return status.code == GrpcStatus::permission_denied || says(status, "user name is empty") ||
         says(status, "invalid user ID") || says(status, "authentication is not enabled");  // for a login
}

// An interceptor in front of the request says so.
bool never_began(const GrpcStatus& status) {
  return status.not_carried_out || says(status, "etcdserver: no leader") || says(status, "too many requests");
}

}  // namespace

Trouble trouble_in(const GrpcStatus& status) {
  if (status.code == GrpcStatus::ok) return Trouble::none;
  if (says(status, "requested lease not found")) return Trouble::no_lease;
  if (is_about_rights(status)) return Trouble::refused;
  // An administrator changed rights since the login; a signed token (JWT) is invalid then.
  if (says(status, "revision of auth store is old")) return Trouble::unauthorized;
  switch (status.code) {
    case GrpcStatus::unauthenticated:
      return Trouble::unauthorized;
    case GrpcStatus::resource_exhausted:
      return Trouble::overloaded;
    case GrpcStatus::canceled:
    case GrpcStatus::deadline_exceeded:
    case GrpcStatus::aborted:
    case GrpcStatus::unavailable:
    // A time limit of the server's own, and whatever else it has no number for: it stops, is not ready, ...
    case GrpcStatus::unknown:
      return Trouble::unavailable;
    default:
      return Trouble::refused;
  }
}

Failure to_failure(const GrpcStatus& status, const std::string& endpoint) {
  const std::string detail = endpoint + ": " + status.message;
  switch (trouble_in(status)) {
    case Trouble::none:
      return {};
    case Trouble::unavailable:
      return {never_began(status) ? errc::unavailable : errc::ambiguous, detail};
    case Trouble::unauthorized:
      return {errc::access_denied, detail};
    case Trouble::overloaded:
      return {errc::unavailable, detail};
    case Trouble::no_lease:
      return {errc::lost, detail};
    case Trouble::refused:
      break;
  }
  if (is_about_rights(status)) return {errc::access_denied, detail};
  if (status.code == GrpcStatus::unimplemented) return {errc::unsupported, detail};
  return {errc::protocol, detail};
}

}  // namespace dlock::etcd
