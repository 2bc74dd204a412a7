// Waiting for a lock of any kind, or for several, in a program that must go on listening to signals.
#pragma once

#include <dlock/client.hpp>

#include <string>
#include <variant>

#include "cli/account.hpp"
#include "cli/arguments.hpp"
#include "cli/held.hpp"
#include "cli/inherited.hpp"
#include "cli/reporter.hpp"
#include "cli/signal_queue.hpp"
#include "cli/wait_explainer.hpp"

namespace dlock::cli {

// Nothing is held.
struct NotHeld {
  Account::Result why;  // conflict, interrupted or failed
  int status;           // that dlock exits with
  std::string reason;
};

// What the arguments ask for, or why it is not held. Throws Error. INT, TERM, HUP and QUIT end the
// wait, unless the caller had them ignored; USR1 and USR2 stay pending. A service that the client's reporter has not
// seen reached within Arguments::connect_wait ends it, too, and so does, like HUP, a leash that is readable. Nothing
// that the explainer asks delays the return.
[[nodiscard]] std::variant<Held, NotHeld> acquire(const Client& client, const Arguments& arguments,
                                                  const Inherited& inherited, SignalQueue& signals, Reporter& reporter,
                                                  WaitExplainer& explainer, int leash = -1);

}  // namespace dlock::cli
