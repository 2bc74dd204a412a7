#include "cli/arguments.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/application.hpp"
#include "cli/command_line.hpp"
#include "cli/text.hpp"

namespace dlock::cli {

namespace {

// The words before "--" belong to dlock; the others belong to the command, and dlock does not read them.
struct SplitWords {
  std::vector<std::string> own;
  std::optional<std::string> name;  // given as "-- NAME -- COMMAND", for names that begin with "-"
  std::vector<std::string> command;
  bool separated = false;
};

SplitWords split_at_command(const std::vector<std::string>& words) {
  SplitWords split;
  auto mark = std::ranges::find(words, "--");
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

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* each : app.get_subcommands({})) names.push_back(each->get_name());
  return names;
}

[[noreturn]] void refuse_command(const CLI::App& app, const std::string& word) {
  std::vector<std::string> known = command_names(app);
  known.emplace_back("help");
  const std::string meant = most_like(word, known);
  if (!meant.empty()) throw UsageError(fmt::format(R"("{}" is not a command; did you mean "{}"?)", word, meant));
  throw UsageError(fmt::format(R"("{}" is not a command; these are: {})", word, fmt::join(known, ", ")));
}

// The first word is a command, unless it asks for help or the version.
void require_command(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty()) throw UsageError("there is no command; see dlock --help");
  const std::string& first = words.front();
  const std::vector<std::string> known = command_names(app);
  if (!first.starts_with('-')) {
    if (std::ranges::find(known, first) == known.end()) refuse_command(app, first);
    return;
  }
  const std::string option = option_in(first);
  if (app.get_option_no_throw(option) != nullptr) return;
  const bool of_a_command = std::ranges::any_of(app.get_subcommands({}), [&](const CLI::App* command) {
    return command->get_option_no_throw(option) != nullptr;
  });
  if (!of_a_command) throw UsageError(fmt::format("{}: no such option", option));
  const auto command = std::ranges::find_first_of(words, known);
  throw UsageError(fmt::format("{}: options go after the command: dlock {} {} ...", option,
                               command == words.end() ? "COMMAND" : *command, option));
}

// "dlock help", "dlock help VERB".
Answer help_with(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.size() < 2 || words[1] == "help") return Answer{app.help()};
  const CLI::App* command = find_command(app, words[1]);
  if (command == nullptr) refuse_command(app, words[1]);
  return Answer{command->help()};
}

void take_command(Arguments& arguments, const SplitWords& split, const CLI::App& verb) {
  if (!split.separated) {
    throw UsageError(fmt::format("\"--\" {} missing: {} [OPTIONS] NAME{} -- COMMAND [ARGUMENT...]",
                                 arguments.names.size() > 1 ? "is" : "and a command are", words_for(verb),
                                 arguments.verb == Verb::run ? "..." : ""));
  }
  if (split.command.empty()) throw UsageError("there is no command after \"--\"");
  if (split.name && !arguments.names.empty()) {
    throw UsageError("there are two lock names, one before \"--\" and one after it");
  }
  if (split.name) arguments.names = {*split.name};
  arguments.command = split.command;
}

bool given(const CLI::App& verb, const char* name) {
  const CLI::Option* option = verb.get_option_no_throw(name);
  return option != nullptr && option->count() > 0;
}

// Checks the rules about several options and arguments, which CLI11 cannot check.
void check_together(const CommandLine& line) {
  const Arguments& arguments = line.arguments;
  if (arguments.verb == Verb::forget) {
    if (arguments.names.empty() != arguments.idle.has_value()) {
      throw UsageError("forget takes either names or --idle TIME");
    }
    return;
  }
  if (arguments.verb == Verb::run && arguments.names.empty()) {
    throw UsageError(arguments.json_file.empty() ? "NAME is required; see dlock run --help"
                                                 : "the lock's name is missing; --json takes a FILE: dlock run --json "
                                                   "FILE NAME... -- COMMAND");
  }
  if (!line.kind_option.empty() && arguments.names.size() > 1) {
    throw UsageError(fmt::format("{} takes one name, not {}; several names are plain locks", line.kind_option,
                                 arguments.names.size()));
  }
  std::vector<std::string> names = arguments.names;
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end()) {
    throw UsageError(fmt::format("\"{}\" is named twice", *twice));
  }
}

std::variant<Arguments, Answer> parse_words(const std::vector<std::string>& words) {
  CommandLine line;
  if (!words.empty() && words.front() == "help") return help_with(line.app, words);
  require_command(line.app, words);
  const bool has_command = words.front() == "run" || words.front() == "elect";
  const SplitWords split = has_command ? split_at_command(words) : SplitWords{.own = words, .name = {}, .command = {}};
  if (split.name) line.app.get_subcommand("elect")->get_option("NAME")->required(false);
  if (const auto answer = parse(line.app, split.own)) return Answer{*answer};

  const auto [verb, what] =
      *std::ranges::find_if(line.verbs, [&](const auto& each) { return line.app.got_subcommand(each.first); });
  Arguments& arguments = line.arguments;
  arguments.verb = what;
  if (what == Verb::elect || what == Verb::leader) arguments.kind = LockKind::election;
  if (given(*verb, "--permits")) {
    arguments.kind = LockKind::semaphore;
    line.kind_option = "--permits";
  }
  if (has_command) take_command(arguments, split, *verb);
  const bool ends = given(*verb, "--wait") || given(*verb, "--try");
  arguments.connect_wait = line.connect_wait.value_or(ends ? forever : arguments.connect_wait);
  check_together(line);
  return std::move(arguments);
}

}  // namespace

std::optional<std::vector<std::string>> words_for_other_program(const std::vector<std::string>& words) {
  const bool helps = words.size() > 1 && words.front() == "help";
  const auto named = [&](const OtherProgram& each) { return words.size() > helps && words[helps] == each.command; };
  const auto* const found = std::ranges::find_if(other_programs, named);
  if (found == other_programs.end()) return std::nullopt;
  std::vector<std::string> result = {std::string("dlock-") + found->command};
  if (helps) {
    result.emplace_back("--help");
  } else {
    result.insert(result.end(), words.begin() + 1, words.end());
  }
  return result;
}

std::variant<Arguments, Answer> parse_arguments(const std::vector<std::string>& words) {
  try {
    return parse_words(words);
  } catch (const UsageError& error) {
    throw UsageError(without_urls(error.what(), words));
  }
}

}  // namespace dlock::cli
