// The words that a shell offers behind a word of dlock's command line. The scripts for bash, fish and zsh ask for it by
// "dlock complete -- WORD...", so that options and commands stand in one place only.
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

// The words stand behind "dlock"; the last one is being completed, and may be empty. The answer's first line says what
// is offered: "words", then each on a line with its description behind a tab; "files", "directories" and "processes" of
// the shell's own; "command": what the shell offers for the words behind "--".
[[nodiscard]] std::string completion(const CLI::App& app, const std::vector<std::string>& words,
                                     const LockNames& names);

// For a program that was started with "complete -- WORD...". Returns its exit status.
[[nodiscard]] int print_completion(const CLI::App& app, const std::vector<std::string>& words,
                                   const LockNames& names = {});

// For a program without lock names: answers a shell, --help and --version, and returns the exit status; otherwise reads
// the words into the places that the options name, and returns nothing. Throws UsageError.
[[nodiscard]] std::optional<int> answer_or_parse(CLI::App& app, const std::vector<std::string>& words);

}  // namespace dlock::cli
