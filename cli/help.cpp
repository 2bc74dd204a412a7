#include "cli/help.hpp"

namespace dlock::cli {

std::string_view help_text(std::string_view name);  // a file of cli/help/, without ".txt"

std::string help_footer(std::string_view command) {
  constexpr std::string_view place = "{exit statuses}\n";
  std::string text(help_text(command));
  if (const auto at = text.find(place); at != std::string::npos) {
    text.replace(at, place.size(), help_text("exit_statuses"));
  }
  return text;
}

}  // namespace dlock::cli
