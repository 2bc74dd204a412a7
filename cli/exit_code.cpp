#include "cli/exit_code.hpp"

#include <dlock/error.hpp>

namespace dlock::cli {

ExitCode exit_code(const std::error_code& ec) noexcept {
  if (ec.category() != error_category()) return ExitCode::system;
  switch (static_cast<errc>(ec.value())) {
    case errc::timed_out:
      return ExitCode::timed_out;
    case errc::unavailable:
    case errc::ambiguous:
      return ExitCode::unavailable;
    case errc::access_denied:
      return ExitCode::access_denied;
    case errc::invalid_argument:
      return ExitCode::usage;
    case errc::unsupported:
      return ExitCode::unsupported;
    case errc::lost:
    case errc::not_owner:
      return ExitCode::lost;
    case errc::cancelled:
    case errc::closed:
    case errc::protocol:
      break;
  }
  return ExitCode::internal;
}

}  // namespace dlock::cli
