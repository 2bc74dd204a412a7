// The part of --help below the options: the texts in cli/help/.
#pragma once

#include <string>
#include <string_view>

namespace dlock::cli {

// Of "dlock" itself, or of one of its commands.
[[nodiscard]] std::string help_footer(std::string_view command);

}  // namespace dlock::cli
