// Waits for a lock of any kind, or for several, and handles signals meanwhile.
#pragma once

#include <optional>

#include "cli/account.hpp"
#include "cli/held.hpp"
#include "cli/session.hpp"

namespace dlock::cli {

// Acquires what the arguments request, and enters the wait and the hold into the account. nullopt: nothing is held, and
// the account has the result (conflict, interrupted or failed), the status and the reason. Throws Error.
//
// INT, TERM, HUP and QUIT end the wait, unless the caller ignored them; USR1 and USR2 stay pending. It also ends if a
// service was not reached within Arguments::connect_wait, and, as by HUP, when the leash is readable.
[[nodiscard]] std::optional<Held> acquire(Session& session, Account& account, int leash = -1);

}  // namespace dlock::cli
