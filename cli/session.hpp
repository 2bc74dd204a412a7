// What the commands have in common in meeting the lock service.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <dlock/client.hpp>

#include "cli/arguments.hpp"
#include "cli/reporter.hpp"

namespace dlock::cli {

// A client for what a command takes: where locks live with their session, --lease is the session's (a second at
// least), unless the URL says how long a session lives. Throws what connect() throws, and UsageError where the URL says
// another time than --lease.
[[nodiscard]] Client connect_for_command(const std::string& url, const Arguments& arguments, std::string label,
                                         std::shared_ptr<Reporter> reporter);

// Says what the arguments want to be said.
[[nodiscard]] std::shared_ptr<Reporter> reporter_for(const Arguments& arguments);

// The name under which a command's lock appears to people: the program's file name, as far as a label may hold it.
[[nodiscard]] std::string label_for(std::string_view program);

// A backend that only knows this process excludes nobody from the command line.
void warn_if_private(const Client& client, bool quiet);

}  // namespace dlock::cli
