// The exit statuses of the dlock command. The same table is in --help, dlock.1 and docs/cli.md.
#pragma once

#include <exception>
#include <system_error>

namespace dlock::cli {

enum class ExitCode : int {
  ok = 0,
  findings = 1,        // doctor: an error; bench --compare: a worse figure; torture: a violation; leader: none;
                       // status --exit-code: it is held
  usage = 64,          // the command line, a name, a URL or an option is wrong
  unavailable = 69,    // the service could not be reached or did not answer
  internal = 70,       // the answer of the service was invalid, or dlock failed
  system = 71,         // the operating system refused something (fork, descriptors)
  output = 74,         // standard output could not be written
  busy = 75,           // another client holds the lock (--try), or a name is in use (forget)
  timed_out = 76,      // another client held the lock for the whole --wait
  access_denied = 77,  // the service refused the credentials, or a permission is missing
  unsupported = 78,    // this backend cannot do that
  lost = 79,           // the lock was lost while it was in use
  cannot_run = 126,    // the command was found and cannot be run
  not_found = 127,     // the command was not found
};

// The status for a failure reported by the library.
[[nodiscard]] ExitCode exit_code(const std::error_code& ec) noexcept;

// The status for any exception of a command.
[[nodiscard]] ExitCode exit_code(const std::exception& error) noexcept;

// The status that shells report for a command killed by a signal.
[[nodiscard]] constexpr int signalled(int signal) noexcept {
  return 128 + signal;
}

}  // namespace dlock::cli
