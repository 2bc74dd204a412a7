#include "backends/etcd/connection/failures.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace dlock::etcd {

namespace {

constexpr int any = -1;

struct Row {
  int code;
  std::string_view words;  // a part of the message; etcd's versions differ in the codes
  Outcome outcome;
  errc failure;
};

// The first row that matches counts.
constexpr std::array<Row, 15> rows = {{
    {any, "requested lease not found", Outcome::no_lease, errc::lost},
    {any, "invalid user ID", Outcome::refused, errc::access_denied},  // the answer to a login
    // An administrator changed rights since the login, and signed tokens (JWT) are invalid then.
    {any, "revision of auth store is old", Outcome::unauthorized, errc::access_denied},
    // Authentication was switched on, and the client has no token.
    {any, "user name is empty", Outcome::unauthorized, errc::access_denied},
    {any, "corrupt cluster", Outcome::overloaded, errc::unavailable},  // an alarm, until an administrator disarms it
    {GrpcStatus::permission_denied, "", Outcome::refused, errc::access_denied},
    {GrpcStatus::unauthenticated, "", Outcome::unauthorized, errc::access_denied},
    {GrpcStatus::resource_exhausted, "", Outcome::overloaded, errc::unavailable},  // or the alarm NOSPACE
    {GrpcStatus::invalid_argument, "", Outcome::refused, errc::protocol},
    {GrpcStatus::out_of_range, "", Outcome::refused, errc::protocol},
    {GrpcStatus::unimplemented, "", Outcome::refused, errc::unsupported},
    // Refusals before the call began.
    {any, "etcdserver: no leader", Outcome::unavailable, errc::unavailable},
    {any, "too many requests", Outcome::unavailable, errc::unavailable},
    {any, "not supported for learner", Outcome::unavailable, errc::unavailable},
    {any, "etcdserver: not capable", Outcome::unavailable, errc::unavailable},
}};
// The member stops, is not ready, or reached a time limit. Unknown codes count as temporary.
constexpr Row otherwise = {any, "", Outcome::unavailable, errc::ambiguous};

bool contains(const GrpcStatus& status, std::string_view words) {
  return status.message.find(words) != std::string::npos;
}

const Row& row_of(const GrpcStatus& status) {
  const auto* const found = std::ranges::find_if(rows, [&status](const Row& row) {
    return (row.code == any || row.code == status.code) && contains(status, row.words);
  });
  return found == rows.end() ? otherwise : *found;
}

}  // namespace

Outcome outcome_of(const GrpcStatus& status) {
  return status.code == GrpcStatus::ok ? Outcome::success : row_of(status).outcome;
}

Failure to_failure(const GrpcStatus& status, const std::string& endpoint) {
  if (status.code == GrpcStatus::ok) return {};
  const errc code = status.not_carried_out ? errc::unavailable : row_of(status).failure;
  return {code, endpoint + ": " + status.message};
}

bool is_without_logins(const GrpcStatus& status) {
  return contains(status, "authentication is not enabled");
}

}  // namespace dlock::etcd
