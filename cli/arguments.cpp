#include "cli/arguments.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <dlock/spi/url.hpp>

#include "cli/command_line.hpp"
#include "cli/secret_arguments.hpp"
#include "cli/text.hpp"

namespace dlock::cli {

namespace {

// The words before "--" belong to dlock, the others to the command: they are never looked at.
struct SplitWords {
  std::vector<std::string> own;
  std::optional<std::string> name;  // given as "-- NAME -- COMMAND", for names that begin with "-"
  std::vector<std::string> command;
  bool separated = false;
};

SplitWords split_at_command(const std::vector<std::string>& words) {
  SplitWords split;
  auto mark = std::find(words.begin(), words.end(), "--");
  split.own.assign(words.begin(), mark);
  if (mark == words.end()) return split;
  split.separated = true;
  if (words.end() - mark > 2 && *(mark + 2) == "--") {
    split.name = *(mark + 1);
    mark += 2;
  }
  split.command.assign(mark + 1, words.end());
  return split;
}

// Reads what the command line says.
class Parser {
 public:
  std::variant<Arguments, Answer> parse(const std::vector<std::string>& words);

 private:
  void take_values();
  void take_times();
  void take_kind();
  void require_verb(const std::vector<std::string>& words) const;
  [[noreturn]] void refuse_verb(const std::string& word) const;
  [[noreturn]] void explain_extras() const;
  [[noreturn]] void explain_number_of_values(const std::string& text) const;
  [[nodiscard]] std::vector<std::string> verb_names() const;
  [[nodiscard]] Answer help_with(const std::vector<std::string>& verbs) const;
  void note_verb();
  void take_command(const SplitWords& split);
  Arguments finish(const SplitWords& split);

  CommandLine line_;
  Arguments& result_ = line_.arguments;
};

Duration to_duration(const TextOption& option) {
  const std::optional<Duration> value = parse_duration(option.text);
  if (!value) {
    throw UsageError(fmt::format("{}: \"{}\" is not a time; write a number with a unit, such as 250ms, 30s, 5m, 12h",
                                 option.name, option.text));
  }
  return *value;
}

std::int64_t to_number(const TextOption& option, std::int64_t least, std::int64_t most) {
  std::int64_t number = 0;
  const char* const end = option.text.data() + option.text.size();
  const auto [read, error] = std::from_chars(option.text.data(), end, number);
  if (error == std::errc() && read == end && number >= least && number <= most) return number;
  throw UsageError(fmt::format("{}: must be {} to {}, not \"{}\"", option.name, least, most, option.text));
}

constexpr std::int64_t highest_status = 255;
constexpr std::int64_t highest_number = std::numeric_limits<std::int32_t>::max();

LockKind to_kind(const TextOption& option) {
  const auto* const found = std::ranges::find(every_kind, option.text, kind_word);
  if (found != every_kind.end()) return *found;
  throw UsageError(
      fmt::format("{}: must be lock, read-write, semaphore or election, not \"{}\"", option.name, option.text));
}

void Parser::take_times() {
  if (line_.try_once && !line_.wait.text.empty()) throw UsageError("--try and --wait exclude each other");
  if (!line_.wait.text.empty()) result_.wait = to_duration(line_.wait);
  if (line_.try_once) result_.wait = Duration();
  if (line_.try_once || !line_.wait.text.empty()) result_.connect_wait = forever;  // they end by themselves
  if (!line_.connect_wait.text.empty()) result_.connect_wait = to_duration(line_.connect_wait);
  if (result_.connect_wait == Duration()) {
    throw UsageError("--connect-wait: must be longer than 0; no service is reached in no time");
  }
  if (!line_.lease.text.empty()) result_.lease = to_duration(line_.lease);
  if (!line_.hold_at_least.text.empty()) result_.hold_at_least = to_duration(line_.hold_at_least);
  if (!line_.kill_after.text.empty()) result_.kill_after = to_duration(line_.kill_after);
  if (!line_.idle.text.empty()) result_.idle = to_duration(line_.idle);
}

void Parser::take_kind() {
  std::vector<std::string> kinds;
  if (line_.shared) kinds.emplace_back("--shared");
  if (line_.exclusive) kinds.emplace_back("--exclusive");
  if (!line_.permits.text.empty()) kinds.emplace_back(line_.permits.name);
  if (kinds.size() > 1) throw UsageError(fmt::format("{} and {} exclude each other", kinds[0], kinds[1]));
  if (!line_.permits.text.empty()) {
    result_.kind = LockKind::semaphore;
    result_.permits = to_number(line_.permits, 1, highest_number);
  } else if (!kinds.empty()) {
    result_.kind = LockKind::read_write;
    result_.mode = line_.shared ? Mode::shared : Mode::exclusive;
  } else if (!line_.kind.text.empty()) {
    result_.kind = to_kind(line_.kind);
  }
  if (result_.verb == Verb::elect || result_.verb == Verb::leader) result_.kind = LockKind::election;
  if (!kinds.empty() && result_.names.size() > 1) {
    throw UsageError(
        fmt::format("{} takes one name, not {}; several names are plain locks", kinds.front(), result_.names.size()));
  }
}

void Parser::take_values() {
  if (!result_.bench.compare.empty() && result_.bench.measures()) {
    throw UsageError("--compare measures nothing, and takes no other option");
  }
  if (!result_.torture.check.empty() && result_.torture.breaks) {
    throw UsageError("--check breaks nothing, and takes no other option");
  }
  if (!line_.conflict_status.text.empty()) {
    result_.conflict_status = static_cast<int>(to_number(line_.conflict_status, 0, highest_status));
  }
  if (!line_.parent.text.empty()) result_.parent = static_cast<pid_t>(to_number(line_.parent, 1, highest_number));
  if (result_.quiet && result_.verbose) throw UsageError("--quiet and --verbose exclude each other");
  result_.json_file = line_.json_file.text;
  if (result_.json_file == "-") {
    throw UsageError("--json: standard output is the command's; name a file, or /dev/stderr, instead of \"-\"");
  }
  result_.metrics_file = line_.metrics_file.text;
  if (result_.json && result_.names_only) throw UsageError("--json and --names exclude each other");
  take_times();
  take_kind();
  std::vector<std::string> names = result_.names;
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end() && result_.verb != Verb::forget) {
    throw UsageError(fmt::format("\"{}\" is named twice", *twice));
  }
}

// The option that a word begins with; what follows, whether behind a '=' or not, may be a password.
std::string option_in(std::string_view word) {
  if (!word.starts_with("--")) return std::string(word.substr(0, 2));
  const auto in_name = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; };
  return {word.begin(), std::find_if_not(word.begin(), word.end(), in_name)};
}

std::vector<std::string> Parser::verb_names() const {
  std::vector<std::string> names;
  names.reserve(line_.verbs.size());
  for (const auto& [app, verb] : line_.verbs) names.push_back(app->get_name());
  return names;
}

void Parser::refuse_verb(const std::string& word) const {
  std::vector<std::string> known = verb_names();
  known.emplace_back("help");
  const std::string meant = most_like(word, known);
  if (!meant.empty()) throw UsageError(fmt::format(R"("{}" is not a command; did you mean "{}"?)", word, meant));
  throw UsageError(fmt::format(R"("{}" is not a command; these are: {})", word, fmt::join(known, ", ")));
}

// The first word is a command, unless it asks for help or the version.
void Parser::require_verb(const std::vector<std::string>& words) const {
  if (words.empty()) throw UsageError("there is no command; see dlock --help");
  const std::string& first = words.front();
  const std::vector<std::string> known = verb_names();
  if (!first.starts_with('-')) {
    if (std::ranges::find(known, first) == known.end()) refuse_verb(first);
    return;
  }
  const std::string option = option_in(first);
  if (line_.app.get_option_no_throw(option) != nullptr) return;
  const bool of_a_verb = std::ranges::any_of(
      line_.verbs, [&](const auto& verb) { return verb.first->get_option_no_throw(option) != nullptr; });
  if (!of_a_verb) throw UsageError(fmt::format("{}: no such option", option));
  const auto verb = std::ranges::find_first_of(words, known);
  throw UsageError(fmt::format("{}: options go behind the command: dlock {} {} ...", option,
                               verb == words.end() ? "COMMAND" : *verb, option));
}

// CLI11 would print the words themselves, and a word may be a password.
void Parser::explain_extras() const {
  std::string option;
  for (const std::string& word : line_.app.remaining(true)) {
    if (option.empty() && word.starts_with('-')) option = option_in(word);
  }
  const CLI::App& verb = *line_.app.get_subcommands().front();
  if (option.empty()) {
    throw UsageError(fmt::format("there are more arguments than expected; see dlock {} --help", verb.get_name()));
  }
  std::vector<std::string> known;
  for (const CLI::Option* each : verb.get_options()) {
    if (each->nonpositional() && !each->get_group().empty()) known.push_back("--" + each->get_lnames().front());
  }
  const std::string meant = most_like(option, known);
  throw UsageError(option + ": no such option" + (meant.empty() ? "" : "; did you mean " + meant + "?"));
}

// CLI11 says "--wait: 1 required TIME missing", or "NAME: At Most 1 required but received 2".
void Parser::explain_number_of_values(const std::string& text) const {
  if (!text.starts_with('-')) explain_extras();
  const std::string option = text.substr(0, text.find(": "));
  if (text.ends_with(" missing")) throw UsageError(option + ": the value is missing");
  if (text.find("At least 2 ") != std::string::npos) throw UsageError(option + ": takes two values");
  if (text.find("At Most 1 ") != std::string::npos) throw UsageError(option + ": may be given only once");
  throw UsageError(text);
}

// "dlock help", "dlock help VERB".
Answer Parser::help_with(const std::vector<std::string>& verbs) const {
  if (verbs.empty()) return Answer{line_.app.help()};
  const auto known =
      std::ranges::find(line_.verbs, verbs.front(), [](const auto& verb) { return verb.first->get_name(); });
  if (known == line_.verbs.end()) refuse_verb(verbs.front());
  return Answer{known->first->help()};
}

void Parser::note_verb() {
  for (const auto& [app, verb] : line_.verbs) {
    if (line_.app.got_subcommand(app)) result_.verb = verb;
    CLI::Option* option = verb == Verb::bench ? nullptr : app->get_option_no_throw("--url");
    if (option != nullptr && option->count() > 0) result_.url = line_.url;
    if (verb != Verb::torture) continue;
    for (const char* each : {"--url", "--minutes", "--seed", "--workers", "--kind", "--directory"}) {
      if (app->count(each) > 0) result_.torture.breaks = true;
    }
  }
}

void Parser::take_command(const SplitWords& split) {
  if (!split.separated) {
    throw UsageError(fmt::format("\"--\" {} missing: dlock {} [OPTIONS] NAME{} -- COMMAND [ARGUMENT...]",
                                 result_.names.size() > 1 ? "is" : "and a command are",
                                 result_.verb == Verb::run ? "run" : "elect", result_.verb == Verb::run ? "..." : ""));
  }
  if (split.command.empty()) throw UsageError("there is no command after \"--\"");
  if (split.name) result_.names = {*split.name};
  result_.command = split.command;
}

Arguments Parser::finish(const SplitWords& split) {
  note_verb();
  if (result_.verb == Verb::forget && result_.names.empty() == line_.idle.text.empty()) {
    throw UsageError("forget takes either names or --idle TIME");
  }
  if (result_.verb == Verb::run || result_.verb == Verb::elect) take_command(split);
  take_values();
  return std::move(result_);
}

std::variant<Arguments, Answer> Parser::parse(const std::vector<std::string>& words) {
  if (!words.empty() && words.front() == "help") return help_with({words.begin() + 1, words.end()});
  require_verb(words);
  const bool has_command = words.front() == "run" || words.front() == "elect";
  const SplitWords split = has_command ? split_at_command(words) : SplitWords{.own = words, .name = {}, .command = {}};
  if (split.name) line_.app.get_subcommand(words.front())->get_option("NAME")->required(false);
  for (const std::string& word : split.own) {
    // CLI11 would take the next word as the value.
    if (word == "--") break;
    if (word.starts_with("--") && word.ends_with('=')) {
      throw UsageError(fmt::format("{}: the value is empty", option_in(word)));
    }
  }
  try {
    line_.app.parse(std::vector<std::string>(split.own.rbegin(), split.own.rend()));  // CLI11 reads from the back
    if (split.name && !result_.names.empty()) {
      throw UsageError("there are two lock names, one before \"--\" and one behind it");
    }
  } catch (const CLI::CallForVersion& call) {
    return Answer{std::string(call.what()) + "\n"};
  } catch (const CLI::CallForHelp&) {
    return Answer{line_.app.help()};
  } catch (const CLI::ExtrasError&) {
    explain_extras();
  } catch (const CLI::ArgumentMismatch& error) {
    explain_number_of_values(error.what());
  } catch (const CLI::RequiredError& error) {
    if (words.front() == "run" && !line_.json_file.text.empty()) {
      throw UsageError("the lock's name is missing; --json takes a FILE: dlock run --json FILE NAME... -- COMMAND");
    }
    throw UsageError(fmt::format("{}; see dlock {} --help", error.what(), words.front()));
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  return finish(split);
}

}  // namespace

std::variant<Arguments, Answer> parse_arguments(const std::vector<std::string>& words) {
  try {
    return Parser().parse(words);
  } catch (const UsageError& error) {
    throw UsageError(without_urls(error.what(), words));
  }
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

}  // namespace dlock::cli
