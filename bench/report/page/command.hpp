// How to repeat a part of a run.
#pragma once

#include <string>
#include <string_view>

#include "bench/report/result.hpp"

namespace dlock::bench {

// The command of the report, for that scenario alone.
[[nodiscard]] std::string command_for(const Report& report, std::string_view scenario);

}  // namespace dlock::bench
