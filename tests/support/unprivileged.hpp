// For servers that refuse to run as root: where the tests do, such a server is run as the user postgres.
#pragma once

#include <string>
#include <vector>

namespace dlock::test {

// The command as it is to be started. It ends with the thread that started it, as any ChildProcess does.
[[nodiscard]] std::vector<std::string> unprivileged(std::vector<std::string> command);

// Makes a file or a directory theirs. Throws std::system_error.
void give_away(const std::string& path);
void write_and_give_away(const std::string& path, const std::string& text);

}  // namespace dlock::test
