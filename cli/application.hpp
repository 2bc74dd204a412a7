// Command lines by CLI11, with dlock's own errors and help. For dlock, dlock-bench and dlock-torture.
#pragma once

#include <dlock/spi/url.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace dlock::cli {

// Gives the application the formatter, --help and --version of all programs.
void set_up(CLI::App& app);

// "dlock run": the words that start this application, or this command of an application.
[[nodiscard]] std::string words_for(const CLI::App& app);

// nullptr: there is no such command.
[[nodiscard]] const CLI::App* find_command(const CLI::App& app, std::string_view name);

// Parses the words into the variables of the options. Returns the text that --help or --version prints, if given.
// Throws UsageError, which names the option, but shows no other word: each may be a password.
[[nodiscard]] std::optional<std::string> parse(CLI::App& app, const std::vector<std::string>& words);

// "--url" of "--url=redis://...", "-u" of "-uredis://...": without what follows, which may be a password.
[[nodiscard]] std::string option_in(std::string_view word);

// The text, with every word of the command line that contains a URL reduced to the URL's scheme.
[[nodiscard]] std::string without_urls(std::string text, const std::vector<std::string>& words);

// nullopt: the text is not a decimal number.
[[nodiscard]] std::optional<std::int64_t> whole_number(std::string_view text) noexcept;

// Checks for CLI::Option::check(). A check of words has them as its name, space-separated, for completion.
[[nodiscard]] CLI::Validator time_check();
[[nodiscard]] CLI::Validator number_check(std::int64_t least, std::int64_t most);
[[nodiscard]] CLI::Validator positive_check();
[[nodiscard]] CLI::Validator word_check(std::vector<std::string> words);

// An option with a time: "250ms", "forever". `Place` is Duration, or an optional one.
template <class Place>
CLI::Option* add_time(CLI::App& app, const char* name, Place& place, const char* description) {
  return app
      .add_option_function<std::string>(
          name, [&place](const std::string& text) { place = *parse_duration(text); }, description)
      ->type_name("TIME")
      ->check(time_check());
}

template <class Place>
struct NumberIn {
  using Type = Place;
};
template <class Number>
struct NumberIn<std::optional<Number>> {
  using Type = Number;
};

// An option with a decimal number. CLI11 would take 010 for eight.
template <class Place>
CLI::Option* add_number(CLI::App& app, const char* name, Place& place, std::int64_t least, std::int64_t most,
                        const char* description) {
  return app
      .add_option_function<std::string>(
          name,
          [&place](const std::string& text) {
            place = static_cast<typename NumberIn<Place>::Type>(*whole_number(text));
          },
          description)
      ->type_name("N")
      ->check(number_check(least, most));
}

}  // namespace dlock::cli
