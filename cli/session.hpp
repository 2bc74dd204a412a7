// What the commands have in common in meeting the lock service.
#pragma once

#include <dlock/client.hpp>

#include <string>
#include <string_view>

namespace dlock::cli {

// The name under which a command's lock appears to people: the program's file name, as far as a label may hold it.
[[nodiscard]] std::string label_for(std::string_view program);

// A backend that only knows this process excludes nobody from the command line.
void warn_if_private(const Client& client, bool quiet);

}  // namespace dlock::cli
