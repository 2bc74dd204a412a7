#include "cli/arguments.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <memory>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <dlock/url.hpp>

#include "bench/session.hpp"
#include "cli/help.hpp"
#include "cli/secret_arguments.hpp"

namespace dlock::cli {

namespace {

// The words before "--" belong to dlock, the others to the command: they are never looked at.
struct SplitWords {
  std::vector<std::string> own;
  std::optional<std::string> name;  // given as "-- NAME -- COMMAND", for names that begin with "-"
  std::vector<std::string> command;
  bool separated = false;
};

SplitWords split_run(const std::vector<std::string>& words) {
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

// CLI11 does not know that there is a command after "--".
class RunFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: dlock run [OPTIONS] NAME -- COMMAND [ARGUMENT...]\n";
  }
};

// As CLI11's validators answer: "" is good.
std::string problem_with_positive(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, number);
  const bool good = error == std::errc() && read == end && std::isfinite(number) && number > 0;
  return good ? "" : "must be a number greater than 0, not \"" + text + "\"";
}

std::string problem_with_workers(const std::string& text) {
  constexpr int least = 2;  // one alone has nobody to contend with
  constexpr int most = 64;  // each is a process
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, number);
  const bool good = error == std::errc() && read == end && number >= least && number <= most;
  return good ? "" : fmt::format("must be {} to {}, not \"{}\"", least, most, text);
}

struct DurationOption {
  const char* name;
  std::string text;
};

// The CLI11 application and the places that it fills.
class Parser {
 public:
  Parser();
  std::variant<Arguments, Answer> parse(const std::vector<std::string>& words);

 private:
  CLI::App* add_verb(Verb verb, const char* name, const char* description, std::string footer);
  void add_bench();
  void add_torture();
  void add_name(CLI::App* app);
  void add_acquire_options(CLI::App* app);
  void take_values();
  [[noreturn]] void explain_extras(const SplitWords& split) const;
  Arguments finish(const SplitWords& split);

  CLI::App app_{help_summary, "dlock"};
  std::vector<std::pair<CLI::App*, Verb>> verbs_;
  Arguments result_;
  std::string url_;
  bool try_once_ = false;
  DurationOption wait_{"--wait", {}};
  DurationOption connect_wait_{"--connect-wait", {}};
  DurationOption lease_{"--lease", {}};
  DurationOption hold_at_least_{"--hold-at-least", {}};
  DurationOption kill_after_{"--kill-after", {}};
  DurationOption idle_{"--idle", {}};
};

Parser::Parser() {
  app_.require_subcommand(1);
  app_.set_version_flag("--version", "dlock " DLOCK_CLI_VERSION, "Print the version and exit");
  app_.footer(main_footer());
  CLI::App* run = add_verb(Verb::run, "run", "Run a command while holding a lock", run_footer());
  run->formatter(std::make_shared<RunFormatter>());
  add_name(run);
  add_acquire_options(run);
  run->add_option("--hold-at-least", hold_at_least_.text, "Keep the lock at least this long, even if the command ends")
      ->type_name("TIME");
  run->add_option("--kill-after", kill_after_.text, "Time between TERM and KILL when the lock is lost (default 5s)")
      ->type_name("TIME");
  run->add_flag("-q,--quiet", result_.quiet, "Say nothing but errors");

  CLI::App* hold = add_verb(Verb::hold, "hold", "Hold a lock until a signal", hold_footer());
  add_name(hold);
  add_acquire_options(hold);
  hold->add_flag("-q,--quiet", result_.quiet, "Say nothing but errors");
  hold->add_flag("--json", result_.json, "Print JSON");

  CLI::App* status = add_verb(Verb::status, "status", "Show who holds a lock", query_footer("status"));
  add_name(status);
  status->add_flag("--json", result_.json, "Print JSON");

  CLI::App* list = add_verb(Verb::list, "list", "Show all locks that the service knows", query_footer("list"));
  list->add_flag("--held", result_.held_only, "Only those that are held");
  list->add_flag("--names", result_.names_only, "Print the names alone, one a line");
  list->add_flag("--json", result_.json, "Print JSON");

  CLI::App* break_lock = add_verb(Verb::break_lock, "break", "Take a lock away from its holder", query_footer("break"));
  add_name(break_lock);
  break_lock->add_flag("--yes", result_.yes, "Really do it");
  break_lock->add_flag("--json", result_.json, "Print JSON");

  CLI::App* forget = add_verb(Verb::forget, "forget", "Remove what the service remembers of names no longer used",
                              query_footer("forget"));
  forget->add_option("NAME", result_.names, "The locks' names")->type_name(" ")->option_text(" ");
  forget->add_option("--idle", idle_.text, "All names that nobody has taken for this long; a minute at least")
      ->type_name("TIME");
  forget->add_flag("--json", result_.json, "Print JSON");

  CLI::App* doctor =
      add_verb(Verb::doctor, "doctor", "Reach the service, show what it guarantees, warn of unsafe settings",
               query_footer("doctor"));
  doctor->add_flag("--json", result_.json, "Print JSON");

  CLI::App* init = add_verb(Verb::init, "init", "Make what locks need in the service, such as tables in a database",
                            query_footer("init"));
  init->add_flag("--json", result_.json, "Print JSON");

  CLI::App* backends = add_verb(Verb::backends, "backends", "Show the kinds of services", query_footer("backends"));
  backends->add_flag("--json", result_.json, "Print JSON");

  add_bench();
  add_torture();
}

void Parser::add_bench() {
  BenchArguments& bench = result_.bench;
  CLI::App* app = add_verb(Verb::bench, "bench", "Measure and compare lock services", bench_footer());
  app->add_option("--url", bench.urls, "A lock service; may be repeated (default: all that can be reached)")
      ->type_name("URL")
      ->expected(1)
      ->take_all();
  app->add_option("--scenario", bench.scenarios, "Measure only this; may be repeated")
      ->type_name("NAME")
      ->expected(1)
      ->take_all()
      ->check(CLI::IsMember(bench::scenario_names()));
  app->add_flag("--quick", bench.quick, "A short run, for a first impression");
  app->add_option("--rate", bench.rate,
                  "Let acquires arrive at this rate a second, whether or not others are under way")
      ->type_name("N")
      ->check(&problem_with_positive);
  app->add_option("--html", bench.html, "Where the report goes (default dlock-bench.html)")->type_name("FILE");
  app->add_option("--json", bench.json, "Where all figures go")->type_name("FILE");
  app->add_option("--compare", bench.compare, "Measure nothing; say what changed from one --json file to another")
      ->type_name("OLD NEW")
      ->expected(2);
}

void Parser::add_torture() {
  TortureArguments& torture = result_.torture;
  CLI::App* app = add_verb(Verb::torture, "torture", "Break everything around the locks, and see whether they hold",
                           torture_footer());
  app->add_option("--minutes", torture.minutes, "For how long things are broken (default 1)")
      ->type_name("N")
      ->check(&problem_with_positive);
  app->add_option("--seed", torture.seed, "Break the same things in the same order as the run that printed it")
      ->type_name("N");
  app->add_option("--workers", torture.workers, "How many processes contend, 2 to 64 (default 4)")
      ->type_name("N")
      ->check(&problem_with_workers);
  app->add_option("--kind", torture.kind, "Of which kind the locks are: lock, read-write, semaphore, semaphore=N")
      ->type_name("KIND");
  app->add_option("--directory", torture.directory, "Where the history goes (default dlock-torture-SEED)")
      ->type_name("DIRECTORY");
  app->add_option("--check", torture.check, "Break nothing; check the history of an earlier run")
      ->type_name("DIRECTORY");
  app->add_option("--plan", torture.plan)->group("");  // to ourselves, as a worker
}

CLI::App* Parser::add_verb(Verb verb, const char* name, const char* description, std::string footer) {
  CLI::App* app = app_.add_subcommand(name, description);
  app->footer(std::move(footer));
  if (verb != Verb::backends && verb != Verb::bench) {
    app->add_option("--url", url_, "The lock service, e.g. file:///run/lock/myapp")->type_name("URL");
  }
  verbs_.emplace_back(app, verb);
  return app;
}

void Parser::add_name(CLI::App* app) {
  app->add_option("NAME", result_.name, "The lock's name")->required()->type_name(" ")->option_text(" ");
}

void Parser::add_acquire_options(CLI::App* app) {
  app->add_option("--wait", wait_.text, "Wait at most this long for the lock (default forever)")->type_name("TIME");
  app->add_option("--connect-wait", connect_wait_.text,
                  "Exit with 69 if the service was not reached within this time (default 30s; with --wait, that)")
      ->type_name("TIME");
  app->add_flag("--try", try_once_, "Do not wait: exit with 75 if somebody else holds the lock");
  app->add_option("--lease", lease_.text, "How long the service keeps the lock if it does not hear from dlock")
      ->type_name("TIME");
}

Duration to_duration(const DurationOption& option) {
  const std::optional<Duration> value = parse_duration(option.text);
  if (!value) {
    throw UsageError(fmt::format("{}: \"{}\" is not a time; write a number with a unit, such as 250ms, 30s, 5m, 12h",
                                 option.name, option.text));
  }
  return *value;
}

void Parser::take_values() {
  if (try_once_ && !wait_.text.empty()) throw UsageError("--try and --wait exclude each other");
  if (!result_.bench.compare.empty() && result_.bench.measures()) {
    throw UsageError("--compare measures nothing, and takes no other option");
  }
  if (!result_.torture.check.empty() && result_.torture.breaks) {
    throw UsageError("--check breaks nothing, and takes no other option");
  }
  if (result_.json && result_.names_only) throw UsageError("--json and --names exclude each other");
  if (!wait_.text.empty()) result_.wait = to_duration(wait_);
  if (try_once_) result_.wait = Duration();
  if (try_once_ || !wait_.text.empty()) result_.connect_wait = forever;  // they end by themselves
  if (!connect_wait_.text.empty()) result_.connect_wait = to_duration(connect_wait_);
  if (result_.connect_wait == Duration()) {
    throw UsageError("--connect-wait: must be longer than 0; no service is reached in no time");
  }
  if (!lease_.text.empty()) result_.lease = to_duration(lease_);
  if (!hold_at_least_.text.empty()) result_.hold_at_least = to_duration(hold_at_least_);
  if (!kill_after_.text.empty()) result_.kill_after = to_duration(kill_after_);
  if (!idle_.text.empty()) result_.idle = to_duration(idle_);
}

// The option that a word begins with; what follows, whether behind a '=' or not, may be a password.
std::string option_in(std::string_view word) {
  if (!word.starts_with("--")) return std::string(word.substr(0, 2));
  const auto in_name = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; };
  return {word.begin(), std::find_if_not(word.begin(), word.end(), in_name)};
}

// CLI11 would print the words themselves, and a word may be a password.
void Parser::explain_extras(const SplitWords& split) const {
  std::string option;
  for (const std::string& word : app_.remaining(true)) {
    if (option.empty() && word.starts_with('-')) option = option_in(word);
  }
  if (!option.empty()) throw UsageError(fmt::format("{}: no such option", option));
  if (app_.get_subcommands().empty()) throw UsageError("that is not a dlock command; see dlock --help");
  if (app_.got_subcommand("run") && !split.separated) {
    throw UsageError("\"--\" is missing: dlock run [OPTIONS] NAME -- COMMAND [ARGUMENT...]");
  }
  throw UsageError("there are more arguments than expected");
}

Arguments Parser::finish(const SplitWords& split) {
  for (const auto& [app, verb] : verbs_) {
    if (app_.got_subcommand(app)) result_.verb = verb;
    CLI::Option* option = verb == Verb::bench ? nullptr : app->get_option_no_throw("--url");
    if (option != nullptr && option->count() > 0) result_.url = url_;
    if (verb != Verb::torture) continue;
    for (const char* each : {"--url", "--minutes", "--seed", "--workers", "--kind", "--directory"}) {
      if (app->count(each) > 0) result_.torture.breaks = true;
    }
  }
  if (result_.verb == Verb::forget && result_.names.empty() == idle_.text.empty()) {
    throw UsageError("forget takes either names or --idle TIME");
  }
  if (result_.verb == Verb::run) {
    if (!split.separated) {
      throw UsageError("\"--\" and a command are missing: dlock run [OPTIONS] NAME -- COMMAND [ARGUMENT...]");
    }
    if (split.command.empty()) throw UsageError("there is no command after \"--\"");
    if (split.name) result_.name = *split.name;
    result_.command = split.command;
  }
  take_values();
  return std::move(result_);
}

std::variant<Arguments, Answer> Parser::parse(const std::vector<std::string>& words) {
  const bool is_run = !words.empty() && words.front() == "run";
  SplitWords split = is_run ? split_run(words) : SplitWords{.own = words, .name = {}, .command = {}};
  if (split.name) app_.get_subcommand("run")->get_option("NAME")->required(false);
  for (const std::string& word : split.own) {
    // CLI11 would take the next word as the value.
    if (word == "--") break;
    if (word.starts_with("--") && word.ends_with('=')) {
      throw UsageError(fmt::format("{}: the value is empty", option_in(word)));
    }
  }
  try {
    app_.parse(std::vector<std::string>(split.own.rbegin(), split.own.rend()));  // CLI11 reads from the back
    if (split.name && !result_.name.empty()) throw UsageError("there are two lock names");
  } catch (const CLI::CallForVersion& call) {
    return Answer{std::string(call.what()) + "\n"};
  } catch (const CLI::CallForHelp&) {
    return Answer{app_.help()};
  } catch (const CLI::ExtrasError&) {
    explain_extras(split);
  } catch (const CLI::ParseError& error) {
    if (words.empty()) throw UsageError("there is no command; see dlock --help");
    if (app_.get_subcommands().empty()) explain_extras(split);
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
