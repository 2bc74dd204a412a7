#include "cli/exit_code.hpp"

#include <dlock/error.hpp>

#include "cli/output.hpp"
#include "cli/usage_error.hpp"

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

ExitCode exit_code(const std::exception& error) noexcept {
  if (dynamic_cast<const UsageError*>(&error) != nullptr) return ExitCode::usage;
  if (dynamic_cast<const OutputError*>(&error) != nullptr) return ExitCode::output;
  if (const auto* of_library = dynamic_cast<const Error*>(&error)) return exit_code(of_library->code());
  if (dynamic_cast<const std::system_error*>(&error) != nullptr) return ExitCode::system;
  return ExitCode::internal;
}

}  // namespace dlock::cli
