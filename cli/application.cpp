#include "cli/application.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <iterator>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <dlock/client.hpp>

#include "cli/secret_arguments.hpp"
#include "cli/text.hpp"
#include "cli/usage_error.hpp"
#include "cmake/revision.hpp"

namespace dlock::cli {

namespace {

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() {
    label("Positionals", "Arguments");
    column_width(26);
  }

 protected:
  // CLI11 does not know that there is a command after "--", nor that options go after the command.
  std::string make_usage(const CLI::App* app, std::string /*name*/) const override {
    const std::string& verb = app->get_name();
    if (!app->get_subcommands({}).empty()) return fmt::format("Usage: {} COMMAND [OPTIONS] ...\n", verb);
    if (verb != "run" && verb != "elect") return CLI::Formatter::make_usage(app, words_for(*app));
    return fmt::format("Usage: dlock {} [OPTIONS] NAME{} -- COMMAND [ARGUMENT...]\n", verb, verb == "run" ? "..." : "");
  }
  std::string make_footer(const CLI::App* app) const override { return app->get_footer(); }
  // Without "Excludes: ...": an error says that soon enough.
  std::string make_option_opts(const CLI::Option* option) const override {
    if (!option->get_option_text().empty()) return " " + option->get_option_text();
    return option->get_items_expected_max() == 0 ? "" : " " + option->get_type_name();
  }
  // CLI11 leaves an empty paragraph in place of the options that are dlock's own.
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    return CLI::detail::find_and_replace(CLI::Formatter::make_help(app, std::move(name), mode), "\n\n\n", "\n\n");
  }
};

std::string version_text() {
  const std::string revision = build_revision();
  return fmt::format("dlock {}\nrevision: {}\nbackends: {}", build_version(), revision.empty() ? "unknown" : revision,
                     fmt::join(backends(), ", "));
}

template <class Number>
bool read_number(std::string_view text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && read == end;
}

// The command that was given, or the application where it has none.
const CLI::App& given_command(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? app : *commands.front();
}

// CLI11 would print the words themselves.
[[noreturn]] void explain_extras(const CLI::App& app) {
  std::string option;
  for (const std::string& word : app.remaining(true)) {
    if (option.empty() && word.starts_with('-')) option = option_in(word);
  }
  const CLI::App& command = given_command(app);
  if (option.empty()) {
    throw UsageError(fmt::format("there are more arguments than expected; see {} --help", words_for(command)));
  }
  std::vector<std::string> known;
  for (const CLI::Option* each : command.get_options()) {
    if (each->nonpositional() && !each->get_group().empty()) known.push_back("--" + each->get_lnames().front());
  }
  const std::string meant = most_like(option, known);
  throw UsageError(option + ": no such option" + (meant.empty() ? "" : "; did you mean " + meant + "?"));
}

// CLI11 says "--wait: 1 required TIME missing", or "NAME: At Most 1 required but received 2".
[[noreturn]] void explain_number_of_values(const CLI::App& app, const std::string& text) {
  if (text.ends_with(" disallowed flag override")) {
    throw UsageError("--" + text.substr(0, text.find(' ')) + ": takes no value");
  }
  if (!text.starts_with('-')) explain_extras(app);
  const std::string option = text.substr(0, text.find(": "));
  if (text.ends_with(" missing")) throw UsageError(option + ": the value is missing");
  if (text.find(" 2 required ") != std::string::npos) throw UsageError(option + ": takes two values");
  if (text.find("At Most 1 ") != std::string::npos) throw UsageError(option + ": may be given only once");
  throw UsageError(text);
}

}  // namespace

void set_up(CLI::App& app) {
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("-h,--help", "Print help and exit");
  app.set_version_flag("--version", version_text, "Print the version, the revision and the backends, and exit");
}

std::string words_for(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : words_for(*app.get_parent()) + " " + app.get_name();
}

const CLI::App* find_command(const CLI::App& app, std::string_view name) {
  const auto commands = app.get_subcommands({});
  const auto found = std::ranges::find(commands, name, [](const CLI::App* each) { return each->get_name(); });
  return found == commands.end() ? nullptr : *found;
}

namespace {

// CLI11 takes "[a,b]" for two values, and "++" for the end of a command. Behind this character they are words.
constexpr char mask = '\x01';

std::string masked(const std::string& word) {
  return word.starts_with('[') || word == "++" || word.starts_with(mask) ? mask + word : word;
}

void unmask_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0) {
      option->disable_flag_override();
      continue;
    }
    option->transform([](std::string value) { return value.starts_with(mask) ? value.substr(1) : value; }, "");
  }
  for (CLI::App* command : app.get_subcommands({})) unmask_values(*command);
}

std::optional<std::string> parse_words(CLI::App& app, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    // CLI11 would take the next word as the value.
    if (word == "--") break;
    if (word.starts_with("--") && word == option_in(word) + "=") {
      throw UsageError(fmt::format("{}: the value is empty", option_in(word)));
    }
  }
  unmask_values(app);
  std::vector<std::string> reversed;  // CLI11 reads from the back
  std::ranges::transform(words.rbegin(), words.rend(), std::back_inserter(reversed), masked);
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::CallForVersion& call) {
    return std::string(call.what()) + "\n";
  } catch (const CLI::CallForHelp&) {
    return app.help();
  } catch (const CLI::ExtrasError&) {
    explain_extras(app);
  } catch (const CLI::ArgumentMismatch& error) {
    explain_number_of_values(app, error.what());
  } catch (const CLI::RequiredError& error) {
    throw UsageError(fmt::format("{}; see {} --help", error.what(), words_for(given_command(app))));
  } catch (const CLI::ExcludesError& error) {
    throw UsageError(CLI::detail::find_and_replace(error.what(), " excludes ", " and ") + " exclude each other");
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> parse(CLI::App& app, const std::vector<std::string>& words) {
  try {
    return parse_words(app, words);
  } catch (const UsageError& error) {
    throw UsageError(without_urls(error.what(), words));
  }
}

std::string option_in(std::string_view word) {
  if (!word.starts_with("--")) return std::string(word.substr(0, 2));
  const auto in_name = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; };
  return {word.begin(), std::find_if_not(word.begin(), word.end(), in_name)};
}

std::string without_urls(std::string text, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    const std::string_view secret = std::string_view(word).substr(start_of_url(word));
    const auto colon = secret.find("://");
    if (colon == std::string_view::npos) continue;
    const std::string shown = std::string(secret.substr(0, colon)) + "://***";
    if (shown.find(secret) != std::string::npos) continue;
    for (auto at = text.find(secret); at != std::string::npos; at = text.find(secret, at + shown.size())) {
      text.replace(at, secret.size(), shown);
    }
  }
  return text;
}

CLI::Validator time_check() {
  const auto check = [](const std::string& text) {
    if (parse_duration(text)) return std::string();
    return fmt::format("\"{}\" is not a time; write a number with a unit, such as 250ms, 30s, 5m, 12h", text);
  };
  return {check, ""};
}

std::optional<std::int64_t> whole_number(std::string_view text) noexcept {
  std::int64_t number = 0;
  return read_number(text, number) ? std::optional(number) : std::nullopt;
}

CLI::Validator number_check(std::int64_t least, std::int64_t most) {
  const auto check = [least, most](const std::string& text) {
    const auto number = whole_number(text);
    if (number && *number >= least && *number <= most) return std::string();
    return fmt::format("must be {} to {}, not \"{}\"", least, most, text);
  };
  return {check, ""};
}

CLI::Validator positive_check() {
  const auto check = [](const std::string& text) {
    double number = 0;
    if (read_number(text, number) && std::isfinite(number) && number > 0) return std::string();
    return fmt::format("must be a number greater than 0, not \"{}\"", text);
  };
  return {check, ""};
}

CLI::Validator word_check(std::vector<std::string> words) {
  std::string name = fmt::format("{}", fmt::join(words, " "));
  const auto check = [words = std::move(words)](const std::string& text) {
    if (std::ranges::find(words, text) != words.end()) return std::string();
    return fmt::format("must be one of {}, not \"{}\"", fmt::join(words, ", "), text);
  };
  return {check, "", std::move(name)};
}

}  // namespace dlock::cli
