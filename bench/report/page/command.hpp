// How to repeat a run, or a part of it.
#pragma once

#include <string>
#include <string_view>

#include "bench/report/result.hpp"

namespace dlock::bench {

// The command of the report, with the services that it measured, for a shell.
[[nodiscard]] std::string whole_command(const Report& report);

// The same for that scenario alone.
[[nodiscard]] std::string command_for(const Report& report, std::string_view scenario);

}  // namespace dlock::bench
