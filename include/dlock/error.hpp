// Errors, sorted by what the caller should do about them.
//
//   try {
//     auto lease = lock.acquire({.wait = 5s});
//   } catch (const dlock::Error& e) {
//     if (e.code() == dlock::errc::timed_out) return;      // somebody else is doing it
//     std::cerr << e.what() << '\n';                       // category, offending part and the service's own words
//     throw;
//   }
//
// That somebody else holds a lock is not an error; try_acquire() answers it with an empty optional.
#pragma once

#include <string>
#include <system_error>
#include <type_traits>

namespace dlock {

// What went wrong.
enum class errc {
  // The wait ended while somebody else held the lock, or Client::forget() found a name in use. Try again later, or
  // leave it to them.
  timed_out = 1,
  // AcquireOptions::cancel was requested. Nothing is held.
  cancelled,
  // The lease can no longer be relied on. Stop touching what the lock protects, then acquire anew.
  lost,
  // The operation needs ownership that the caller does not have. Usually a lease that was released already.
  not_owner,
  // The service could not be reached or did not answer in time. Retry later; check the service.
  unavailable,
  // A request was sent and its answer never came, so its effect is unknown. dlock has begun to clean up; nothing is
  // held as far as the caller is concerned.
  ambiguous,
  // The service refused the credentials, or a permission is missing. Retrying does not help.
  access_denied,
  // A name, URL or option is wrong; the text names the part. Nothing was sent.
  invalid_argument,
  // This backend cannot do that; see Capabilities.
  unsupported,
  // The client was closed.
  closed,
  // The service answered something that makes no sense, or the place of the lock holds something else. Never retried.
  protocol,
};

// The category of errc, and an errc as a std::error_code.
[[nodiscard]] const std::error_category& error_category() noexcept;
[[nodiscard]] std::error_code make_error_code(errc e) noexcept;

// A failure with its explanation: the offending part, and the native text of the service where there is one.
// Never contains a password, but what a service said as it said it: a terminal should get it as printable()
// (dlock/info.hpp).
struct Failure {
  std::error_code code;
  std::string detail;
};

// What every throwing function of dlock throws. what() is "<detail>: <message of the code>".
class Error : public std::system_error {
 public:
  explicit Error(errc e, const std::string& detail = {});
  explicit Error(const Failure& failure);

  // The explanation alone; may be empty.
  [[nodiscard]] const std::string& detail() const noexcept { return detail_; }

 private:
  std::string detail_;
};

}  // namespace dlock

template <>
struct std::is_error_code_enum<dlock::errc> : std::true_type {};
