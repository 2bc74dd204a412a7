#include "backends/etcd/connection/failures.hpp"

#include <string_view>

namespace dlock::etcd {

namespace {

bool says(const GrpcStatus& status, std::string_view words) {
  return status.message.find(words) != std::string::npos;
}

bool is_about_rights(const GrpcStatus& status) {
  return status.code == GrpcStatus::permission_denied || says(status, "invalid user ID");  // for a login
}

// An interceptor in front of the request says so.
bool never_began(const GrpcStatus& status) {
  return status.not_carried_out || says(status, "etcdserver: no leader") || says(status, "too many requests") ||
         says(status, "not supported for learner") || says(status, "etcdserver: not capable");
}

}  // namespace

bool is_without_logins(const GrpcStatus& status) {
  return says(status, "authentication is not enabled");
}

Trouble trouble_in(const GrpcStatus& status) {
  if (status.code == GrpcStatus::ok) return Trouble::none;
  if (says(status, "requested lease not found")) return Trouble::no_lease;
  if (is_about_rights(status)) return Trouble::refused;
  // An administrator changed rights since the login, where a signed token (JWT) is invalid; or switched authentication
  // on, where a client has no token.
  if (says(status, "revision of auth store is old") || says(status, "user name is empty")) return Trouble::unauthorized;
  // The alarm CORRUPT, until an administrator disarms it.
  if (says(status, "corrupt cluster")) return Trouble::overloaded;
  switch (status.code) {
    case GrpcStatus::unauthenticated:
      return Trouble::unauthorized;
    case GrpcStatus::resource_exhausted:  // too many requests; the alarm NOSPACE
      return Trouble::overloaded;
    // Faults of the request.
    case GrpcStatus::invalid_argument:
    case GrpcStatus::out_of_range:
    case GrpcStatus::unimplemented:
      return Trouble::refused;
    // The member stops, is not ready, has no leader, is a learner, reached a time limit of its own, ...; unknown codes
    // count as temporary.
    default:
      return Trouble::unavailable;
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
