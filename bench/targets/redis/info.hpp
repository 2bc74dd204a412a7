// What Redis's INFO says.
#pragma once

#include <string>
#include <string_view>

namespace dlock::bench {

// The value of "name:value"; empty if there is none.
[[nodiscard]] std::string info_field(std::string_view info, std::string_view name);

// How often a command was carried out, by the text of INFO commandstats; 0 if it never was.
[[nodiscard]] double command_calls(std::string_view info, std::string_view command);

// How often clients had those carried out that no script of dlock's calls. What scripts call is counted by the server
// as well, so that the others tell nothing.
[[nodiscard]] double client_requests(std::string_view info);

}  // namespace dlock::bench
