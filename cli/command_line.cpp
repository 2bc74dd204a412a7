#include "cli/command_line.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "cli/application.hpp"
#include "cli/help.hpp"
#include "cli/text.hpp"

namespace dlock::cli {

namespace {

constexpr std::int64_t highest_status = 255;
constexpr std::int64_t highest_number = std::numeric_limits<std::int32_t>::max();

std::string problem_with_connect_wait(const std::string& text) {
  return parse_duration(text) == Duration() ? "must be longer than 0; no service is reached in no time" : "";
}

std::string problem_with_json_file(const std::string& text) {
  return text == "-" ? "standard output is the command's; name a file, or /dev/stderr, instead of \"-\"" : "";
}

CLI::Validator kind_check() {
  std::vector<std::string> words;
  words.reserve(every_kind.size());
  for (const LockKind each : every_kind) words.emplace_back(kind_word(each));
  return word_check(std::move(words));
}

}  // namespace

CommandLine::CommandLine() {
  set_up(app);
  app.require_subcommand(1);
  app.footer(help_footer("dlock"));
  add_takers();
  add_election();
  add_questions();
  add_questions_about_the_service();
  for (const auto& [name, description] : other_programs) {
    app.add_subcommand(name, description)->group("Commands");  // for help only; their words are not parsed here
  }
}

void CommandLine::add_takers() {
  CLI::App* run = add_verb(Verb::run, "run", "Run a command while holding a lock, or several");
  add_names(run, "The lock's name; several: all of these locks, or none", true);
  run->get_option("NAME")->required(false);  // a missing name may have become the value of --json
  add_kinds(run);
  add_acquire_options(run);
  add_time(*run, "--hold-at-least", arguments.hold_at_least,
           "Keep the lock for at least this time, even if the command ends earlier (default 0)");
  add_time(*run, "--kill-after", arguments.kill_after, "Time between TERM and KILL when the lock is lost (default 5s)");
  add_number(*run, "--conflict-exit-code", arguments.conflict_status, 0, highest_status,
             "Exit with this if another client holds it (default 75 with --try, 76 with --wait)");
  run->add_option("--json", arguments.json_file, "Write the result as JSON to this file at the end; may be /dev/stderr")
      ->type_name("FILE")
      ->check(&problem_with_json_file);
  add_metrics(run);
  add_messages(run);

  CLI::App* hold = add_verb(Verb::hold, "hold", "Hold a lock, or several, until a signal");
  add_names(hold, "The lock's name; several: all of these locks, or none", true);
  add_kinds(hold);
  add_acquire_options(hold);
  hold->add_flag("--until-eof", arguments.until_eof, "Also release it when standard input ends");
  add_number(*hold, "--parent", arguments.parent, 1, highest_number, "Also release it when this process ends")
      ->type_name("PID");
  add_metrics(hold);
  add_messages(hold);
  add_json(hold);
}

void CommandLine::add_election() {
  CLI::App* elect = add_verb(Verb::elect, "elect", "Run a command while leading an election, repeatedly");
  add_names(elect, "The election's name", false);
  elect->add_option("--value", arguments.value, "What \"dlock leader\" shows for this leader, such as an address")
      ->type_name("TEXT");
  elect->add_flag("--once", arguments.once,
                  "Lead once: exit when the command has ended, or with 79 if the leadership was lost");
  add_acquire_options(elect);
  add_time(*elect, "--kill-after", arguments.kill_after,
           "Time between TERM and KILL when the leadership is lost (default 5s)");
  add_metrics(elect);
  add_messages(elect);

  CLI::App* leader = add_verb(Verb::leader, "leader", "Show who leads an election");
  add_names(leader, "The election's name", false);
  leader->add_flag("--follow", arguments.follow, "Print each change, until a signal");
  add_messages(leader);
  add_json(leader);
}

void CommandLine::add_questions() {
  CLI::App* status = add_verb(Verb::status, "status", "Show who holds a lock");
  add_names(status, "The lock's name", false);
  add_kind(status);
  status->add_flag("--exit-code", arguments.exit_code, "Exit with 1 if it is held");
  add_json(status);

  CLI::App* list = add_verb(Verb::list, "list", "Show all locks that the service knows");
  add_kind(list);
  list->add_flag("--held", arguments.held_only, "Only held locks");
  CLI::Option* names = list->add_flag("--names", arguments.names_only, "Print only the names, one per line");
  add_json(list)->excludes(names);

  CLI::App* break_lock = add_verb(Verb::break_lock, "break", "Take a lock away from all its holders");
  add_names(break_lock, "The lock's name", false);
  add_kind(break_lock);
  break_lock->add_flag("--yes", arguments.yes, "Required: confirms that you want this");
  add_json(break_lock);

  CLI::App* forget = add_verb(Verb::forget, "forget", "Remove what the service remembers of unused names");
  add_names(forget, "The locks' names", true);
  forget->get_option("NAME")->required(false);
  add_time(*forget, "--idle", arguments.idle, "All names that no client has taken for this time; at least a minute");
  add_kind(forget);
  add_json(forget);
}

void CommandLine::add_questions_about_the_service() {
  add_json(add_verb(Verb::doctor, "doctor", "Check the service, show what it guarantees, warn of unsafe settings"));
  add_json(add_verb(Verb::init, "init", "Create missing tables and other prerequisites in the service"));
  add_json(add_verb(Verb::backends, "backends", "Show the kinds of services"));
}

CLI::App* CommandLine::add_verb(Verb verb, const char* name, const char* description) {
  CLI::App* added = app.add_subcommand(name, description);
  added->group("Commands");
  added->footer(help_footer(name));
  if (verb != Verb::backends) {
    added
        ->add_option("--url", arguments.url,
                     "The lock service (default: DLOCK_URL, otherwise file:// in a directory of this user)")
        ->type_name("URL");
  }
  verbs.emplace_back(added, verb);
  return added;
}

void CommandLine::add_names(CLI::App* verb, const char* description, bool several) {
  CLI::Option* name = verb->add_option("NAME", arguments.names, description);
  name->required()->type_name(" ")->option_text(" ");
  if (!several) name->expected(1);
}

void CommandLine::add_kinds(CLI::App* verb) {
  const auto kind = [this](LockKind what, Mode mode, const char* option) {
    arguments.kind = what;
    arguments.mode = mode;
    kind_option = option;
  };
  CLI::Option* shared = verb->add_flag_callback(
      "--shared", [kind] { kind(LockKind::read_write, Mode::shared, "--shared"); },
      "A read-write lock: hold it together with other readers");
  CLI::Option* exclusive = verb->add_flag_callback(
      "--exclusive", [kind] { kind(LockKind::read_write, Mode::exclusive, "--exclusive"); },
      "A read-write lock: hold it alone");
  CLI::Option* permits =
      add_number(*verb, "--permits", arguments.permits, 1, highest_number,
                 "A semaphore: at most N clients hold it at the same time; all must give the same N");
  shared->excludes(exclusive)->excludes(permits);
  exclusive->excludes(permits);
}

void CommandLine::add_kind(CLI::App* verb) {
  verb->add_option_function<std::string>(
          "--kind",
          [this](const std::string& word) { arguments.kind = *std::ranges::find(every_kind, word, kind_word); },
          "The kind of lock: lock (default), read-write, semaphore, election")
      ->type_name("KIND")
      ->check(kind_check());
}

// A try, and a wait with an end, need no limit for reaching the service.
void CommandLine::add_acquire_options(CLI::App* verb) {
  CLI::Option* wait = add_time(*verb, "--wait", arguments.wait, "Wait at most this time (default forever)");
  add_time(*verb, "--connect-wait", connect_wait,
           "Exit with 69 if the service is not reached within this time (default 30s, or --wait)")
      ->check(&problem_with_connect_wait);
  verb->add_flag_callback(
          "--try", [this] { arguments.wait = Duration(); }, "Do not wait: exit with 75 if another client holds it")
      ->excludes(wait);
  add_time(*verb, "--lease", arguments.lease,
           "How long the service keeps it without a renewal (default 30s, or the URL's)");
}

void CommandLine::add_messages(CLI::App* verb) {
  CLI::Option* quiet = verb->add_flag("-q,--quiet", arguments.quiet, "Print only errors");
  verb->add_flag("-v,--verbose", arguments.verbose, "Also report normal events")->excludes(quiet);
}

void CommandLine::add_metrics(CLI::App* verb) {
  verb->add_option("--metrics", arguments.metrics_file, "Write gauges of the last run to this file, for Prometheus")
      ->type_name("FILE");
}

CLI::Option* CommandLine::add_json(CLI::App* verb) {
  return verb->add_flag("--json", arguments.json, "Print JSON");
}

}  // namespace dlock::cli
