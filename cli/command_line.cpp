#include "cli/command_line.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <dlock/client.hpp>

#include "bench/session.hpp"
#include "cli/help.hpp"
#include "cmake/revision.hpp"

namespace dlock::cli {

namespace {

// In the words of the other documents.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() {
    label("Positionals", "Arguments");
    column_width(26);
  }

 protected:
  // CLI11 does not know that there is a command after "--", nor that options go behind the command.
  std::string make_usage(const CLI::App* app, std::string /*name*/) const override {
    const std::string& verb = app->get_name();
    if (app->get_parent() == nullptr) return "Usage: dlock COMMAND [OPTIONS] ...\n";
    if (verb != "run" && verb != "elect") return CLI::Formatter::make_usage(app, "dlock " + verb);
    return fmt::format("Usage: dlock {} [OPTIONS] NAME{} -- COMMAND [ARGUMENT...]\n", verb, verb == "run" ? "..." : "");
  }
  std::string make_footer(const CLI::App* app) const override { return app->get_footer(); }
  // CLI11 leaves an empty paragraph in place of the options that are dlock's own.
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    return CLI::detail::find_and_replace(CLI::Formatter::make_help(app, std::move(name), mode), "\n\n\n", "\n\n");
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

std::string problem_with_seed(const std::string& text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && read == end ? "" : "must be a whole number, not \"" + text + "\"";
}

std::string problem_with_scenario(const std::string& text) {
  const std::vector<std::string> known = bench::scenario_names();
  if (std::ranges::find(known, text) != known.end()) return "";
  return fmt::format("must be one of {}, not \"{}\"", fmt::join(known, ", "), text);
}

std::string problem_with_workers(const std::string& text) {
  constexpr int least = 2;  // one alone has no other to contend with
  constexpr int most = 64;  // each is a process
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, number);
  const bool good = error == std::errc() && read == end && number >= least && number <= most;
  return good ? "" : fmt::format("must be {} to {}, not \"{}\"", least, most, text);
}

std::string version_text() {
  const std::string revision = build_revision();
  return fmt::format("dlock {}\nrevision: {}\nbackends: {}", build_version(), revision.empty() ? "unknown" : revision,
                     fmt::join(backends(), ", "));
}

}  // namespace

CommandLine::CommandLine() {
  app.formatter(std::make_shared<HelpFormatter>());
  app.require_subcommand(1);
  app.set_help_flag("-h,--help", "Print help and exit");
  app.set_version_flag("--version", version_text, "Print the version, the revision and the backends, and exit");
  app.footer(main_footer());
  add_takers();
  add_election();
  add_questions();
  add_questions_about_the_service();
  add_bench();
  add_torture();
}

void CommandLine::add_takers() {
  CLI::App* run = add_verb(Verb::run, "run", "Run a command while holding a lock, or several", run_footer());
  add_names(run);
  add_kinds(run);
  add_acquire_options(run);
  add_time(run, hold_at_least, "Keep the lock for at least this time, even if the command ends earlier (default 0)");
  add_time(run, kill_after, "Time between TERM and KILL when the lock is lost (default 5s)");
  run->add_option(conflict_status.name, conflict_status.text,
                  "Exit with this if another client holds it (default 75 with --try, 76 with --wait)")
      ->type_name("N");
  run->add_option(json_file.name, json_file.text,
                  "Write the result as JSON to this file at the end; may be /dev/stderr")
      ->type_name("FILE");
  add_metrics(run);
  add_messages(run);

  CLI::App* hold = add_verb(Verb::hold, "hold", "Hold a lock, or several, until a signal", hold_footer());
  add_names(hold);
  add_kinds(hold);
  add_acquire_options(hold);
  hold->add_flag("--until-eof", arguments.until_eof, "Also release it when standard input ends");
  hold->add_option(parent.name, parent.text, "Also release it when this process ends")->type_name("PID");
  add_metrics(hold);
  add_messages(hold);
  add_json(hold);
}

void CommandLine::add_election() {
  CLI::App* elect =
      add_verb(Verb::elect, "elect", "Run a command while leading an election, repeatedly", elect_footer());
  add_name(elect, "The election's name");
  elect->add_option("--value", arguments.value, "What \"dlock leader\" shows for this leader, such as an address")
      ->type_name("TEXT");
  elect->add_flag("--once", arguments.once,
                  "Lead once: exit when the command has ended, or with 79 if the leadership was lost");
  add_acquire_options(elect);
  add_time(elect, kill_after, "Time between TERM and KILL when the leadership is lost (default 5s)");
  add_metrics(elect);
  add_messages(elect);

  CLI::App* leader = add_verb(Verb::leader, "leader", "Show who leads an election", query_footer("leader"));
  add_name(leader, "The election's name");
  leader->add_flag("--follow", arguments.follow, "Print each change, until a signal");
  add_messages(leader);
  add_json(leader);
}

void CommandLine::add_questions() {
  CLI::App* status = add_verb(Verb::status, "status", "Show who holds a lock", query_footer("status"));
  add_name(status, "The lock's name");
  add_kind(status);
  status->add_flag("--exit-code", arguments.exit_code, "Exit with 1 if it is held");
  add_json(status);

  CLI::App* list = add_verb(Verb::list, "list", "Show all locks that the service knows", query_footer("list"));
  add_kind(list);
  list->add_flag("--held", arguments.held_only, "Only held locks");
  list->add_flag("--names", arguments.names_only, "Print only the names, one per line");
  add_json(list);

  CLI::App* break_lock =
      add_verb(Verb::break_lock, "break", "Take a lock away from all its holders", query_footer("break"));
  add_name(break_lock, "The lock's name");
  add_kind(break_lock);
  break_lock->add_flag("--yes", arguments.yes, "Required: confirms that you want this");
  add_json(break_lock);

  CLI::App* forget =
      add_verb(Verb::forget, "forget", "Remove what the service remembers of unused names", query_footer("forget"));
  forget->add_option("NAME", arguments.names, "The locks' names")->type_name(" ")->option_text(" ");
  add_time(forget, idle, "All names that no client has taken for this time; at least a minute");
  add_kind(forget);
  add_json(forget);
}

void CommandLine::add_questions_about_the_service() {
  add_json(add_verb(Verb::doctor, "doctor", "Check the service, show what it guarantees, warn of unsafe settings",
                    query_footer("doctor")));
  add_json(add_verb(Verb::init, "init", "Create missing tables and other prerequisites in the service",
                    query_footer("init")));
  add_json(add_verb(Verb::backends, "backends", "Show the kinds of services", query_footer("backends")));
}

void CommandLine::add_bench() {
  BenchArguments& bench = arguments.bench;
  CLI::App* verb = add_verb(Verb::bench, "bench", "Measure and compare lock services", bench_footer());
  verb->add_option("--url", bench.urls, "A lock service; may be repeated (default: all that can be reached)")
      ->type_name("URL")
      ->expected(1)
      ->take_all();
  verb->add_option("--scenario", bench.scenarios, "Measure only this; may be repeated (default: all)")
      ->type_name("NAME")
      ->expected(1)
      ->take_all()
      ->check(&problem_with_scenario);
  verb->add_flag("--quick", bench.quick, "A short run, for a first impression");
  verb->add_option("--rate", bench.rate, "Start N acquires per second, whether or not earlier ones have been answered")
      ->type_name("N")
      ->check(&problem_with_positive);
  verb->add_option("--html", bench.html, "Write the report to this file (default dlock-bench.html)")->type_name("FILE");
  verb->add_option("--json", bench.json, "Write all figures to this file")->type_name("FILE");
  verb->add_option("--compare", bench.compare, "Measure nothing; show what changed from one --json file to another")
      ->option_text("OLD NEW")
      ->expected(2);
}

void CommandLine::add_torture() {
  TortureArguments& torture = arguments.torture;
  CLI::App* verb =
      add_verb(Verb::torture, "torture", "Inject faults around the locks, and check whether they keep their promises",
               torture_footer());
  verb->add_option("--minutes", torture.minutes, "How long to inject faults (default 1)")
      ->type_name("N")
      ->check(&problem_with_positive);
  verb->add_option("--seed", torture.seed,
                   "Inject the same faults in the same order as the run that printed it (default: random)")
      ->type_name("N")
      ->check(&problem_with_seed);
  verb->add_option("--workers", torture.workers, "How many processes contend, 2 to 64 (default 4)")
      ->type_name("N")
      ->check(&problem_with_workers);
  verb->add_option("--kind", torture.kind, "The kind of locks: lock (default), read-write, semaphore, semaphore=N")
      ->type_name("KIND");
  verb->add_option("--directory", torture.directory, "Write the history to this directory (default dlock-torture-SEED)")
      ->type_name("DIRECTORY");
  verb->add_option("--check", torture.check, "Inject no faults; check the history of an earlier run")
      ->type_name("DIRECTORY");
  verb->add_option("--plan", torture.plan)->group("");  // to ourselves, as a worker
}

CLI::App* CommandLine::add_verb(Verb verb, const char* name, const char* description, std::string footer) {
  CLI::App* added = app.add_subcommand(name, description);
  added->group("Commands");
  added->footer(std::move(footer));
  if (verb != Verb::backends && verb != Verb::bench) {
    added
        ->add_option("--url", url,
                     "The lock service (default: DLOCK_URL, otherwise file:// in a directory of this user)")
        ->type_name("URL");
  }
  verbs.emplace_back(added, verb);
  return added;
}

void CommandLine::add_name(CLI::App* verb, const char* description) {
  verb->add_option("NAME", arguments.names, description)->required()->expected(1)->type_name(" ")->option_text(" ");
}

void CommandLine::add_names(CLI::App* verb) {
  verb->add_option("NAME", arguments.names, "The lock's name; several: all of these locks, or none")
      ->required()
      ->type_name(" ")
      ->option_text(" ");
}

void CommandLine::add_kinds(CLI::App* verb) {
  verb->add_flag("--shared", shared, "A read-write lock: hold it together with other readers");
  verb->add_flag("--exclusive", exclusive, "A read-write lock: hold it alone");
  verb->add_option("--permits", permits.text,
                   "A semaphore: at most N clients hold it at the same time; all must give the same N")
      ->type_name("N");
}

void CommandLine::add_kind(CLI::App* verb) {
  verb->add_option("--kind", kind.text, "The kind of lock: lock (default), read-write, semaphore, election")
      ->type_name("KIND");
}

void CommandLine::add_acquire_options(CLI::App* verb) {
  add_time(verb, wait, "Wait at most this time (default forever)");
  add_time(verb, connect_wait, "Exit with 69 if the service is not reached within this time (default 30s, or --wait)");
  verb->add_flag("--try", try_once, "Do not wait: exit with 75 if another client holds it");
  add_time(verb, lease, "How long the service keeps it without hearing from dlock (default 30s, or the URL's)");
}

void CommandLine::add_time(CLI::App* verb, TextOption& option, const char* description) {
  verb->add_option(option.name, option.text, description)->type_name("TIME");
}

void CommandLine::add_messages(CLI::App* verb) {
  verb->add_flag("-q,--quiet", arguments.quiet, "Say nothing but errors");
  verb->add_flag("-v,--verbose", arguments.verbose, "Also report normal events");
}

void CommandLine::add_metrics(CLI::App* verb) {
  verb->add_option(metrics_file.name, metrics_file.text, "Write gauges of the last run to this file, for Prometheus")
      ->type_name("FILE");
}

void CommandLine::add_json(CLI::App* verb) {
  verb->add_flag("--json", arguments.json, "Print JSON");
}

}  // namespace dlock::cli
