// The prose of --help.
#pragma once

#include <string>

namespace dlock::cli {

// Each ends with a newline.
[[nodiscard]] std::string main_footer();
[[nodiscard]] std::string run_footer();
[[nodiscard]] std::string hold_footer();
[[nodiscard]] std::string elect_footer();
[[nodiscard]] std::string bench_footer();
[[nodiscard]] std::string torture_footer();
[[nodiscard]] std::string query_footer(const char* verb);

}  // namespace dlock::cli
