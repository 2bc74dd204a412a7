// Completes a command line of dlock. The scripts for bash, fish and zsh call "dlock complete -- WORD...", so that
// options and commands are defined in one place.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace dlock::cli {

// The names of locks of that kind ("" for plain ones) at that URL ("" for the default one).
using LockNames = std::function<std::vector<std::string>(const std::string& url, const std::string& kind)>;

// words: those after "dlock"; the last one is being completed, and may be empty. The answer's first line is the kind:
// "words", then one a line, with its description after a tab; "files", "directories" and "processes" from the shell
// itself; "command": what the shell offers for the words after "--".
[[nodiscard]] std::string completion(const CLI::App& app, const std::vector<std::string>& words,
                                     const LockNames& names);

// For a program that was started with "complete -- WORD...". Returns its exit status.
[[nodiscard]] int print_completion(const CLI::App& app, const std::vector<std::string>& words,
                                   const LockNames& names = {});

// For a program without lock names: answers a shell, --help and --version, and returns the exit status; otherwise
// parses the words into the variables of the options, and returns nullopt. Throws UsageError.
[[nodiscard]] std::optional<int> answer_or_parse(CLI::App& app, const std::vector<std::string>& words);

}  // namespace dlock::cli
