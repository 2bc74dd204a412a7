// A process that contends for locks, and records its events.
#pragma once

#include <string>

#include "torture/worker/plan.hpp"

namespace dlock::torture {

// Contends until the board ends the run. Throws exceptions of the library and of the history's file: then the history
// is incomplete.
void work(const Plan& plan, const std::string& url);

// The whole program: work() with the plan in the file, and the environment's URL. Returns the exit status; errors go to
// standard error.
int worker_main(const std::string& plan_file);

}  // namespace dlock::torture
