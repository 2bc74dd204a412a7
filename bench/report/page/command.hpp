// How to repeat a run, or a part of it.
#pragma once

#include <string>
#include <vector>

#include "bench/report/result.hpp"

namespace dlock::bench {

// The command of the report, with the services that it measured, for a shell.
[[nodiscard]] std::string whole_command(const Report& report);

// The same for these scenarios alone.
[[nodiscard]] std::string command_for(const Report& report, const std::vector<std::string>& scenarios);

}  // namespace dlock::bench
