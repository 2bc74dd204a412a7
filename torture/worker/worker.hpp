// A process that contends for locks, and notes all that happens to it.
#pragma once

#include <string>

#include "torture/worker/plan.hpp"

namespace dlock::torture {

// Contends until the board says that the run has ended. Throws what the library or the history's file throws: then the
// history is not complete.
void work(const Plan& plan, const std::string& url);

// The whole program: work() by the plan in the file, with the URL of the environment. The exit status; errors go to
// standard error.
int worker_main(const std::string& plan_file);

}  // namespace dlock::torture
