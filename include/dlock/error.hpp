// Errors, by what the caller should do about them.
//
//   try {
//     auto lease = lock.acquire({.wait = 5s});
//   } catch (const dlock::Error& e) {
//     if (e.code() == dlock::errc::timed_out) return;      // another owner does the work
//     std::cerr << e.what() << '\n';                       // category, offending part and the service's own words
//     throw;
//   }
//
// A lock that another owner holds is not an error: try_acquire() returns an empty optional.
#pragma once

#include <string>
#include <system_error>
#include <type_traits>

namespace dlock {

// What went wrong.
enum class errc {
  // The wait ended while another owner held the lock, or Client::forget() found a name in use. Try again later, or
  // leave the work to the other owner.
  timed_out = 1,
  // AcquireOptions::cancel was requested. Nothing is held.
  cancelled,
  // The lease is no longer reliable. Stop using the protected resource, then acquire again.
  lost,
  // The caller does not own the lock. Usually the lease was released already.
  not_owner,
  // The service is unreachable or did not answer in time. Retry later; check the service.
  unavailable,
  // A request was sent and its answer was lost, so its effect is unknown. The caller holds nothing. dlock cleans up in
  // the background.
  ambiguous,
  // The service refused the credentials, or a permission is missing. Retrying does not help.
  access_denied,
  // A name, URL or option is wrong, or the service already uses it in a different way, as a semaphore with another
  // number of permits; the text names the part. Nothing is held.
  invalid_argument,
  // This backend does not support the operation; see Capabilities.
  unsupported,
  // The client was closed.
  closed,
  // The service sent an invalid answer, or foreign data is stored in the place of the lock. dlock does not retry.
  protocol,
};

// The category of errc, and an errc as a std::error_code.
[[nodiscard]] const std::error_category& error_category() noexcept;
[[nodiscard]] std::error_code make_error_code(errc e) noexcept;

// A failure with its explanation: the offending part, and the original text of the service if there is one. It never
// contains a password. The text of the service is unchanged: show it through printable() (dlock/info.hpp).
struct Failure {
  std::error_code code;
  std::string detail;
};

// The exception type of all functions of dlock. what() is "<detail>: <message of the code>".
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
