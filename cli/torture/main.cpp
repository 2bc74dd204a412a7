// dlock-torture, which "dlock torture" starts: injects faults around the locks of a service, and checks whether they
// kept their promises.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include <dlock/client.hpp>
#include <dlock/duration.hpp>

#include "cli/application.hpp"
#include "cli/completion.hpp"
#include "cli/exit_code.hpp"
#include "cli/help.hpp"
#include "cli/inherited.hpp"
#include "cli/interruption.hpp"
#include "cli/location.hpp"
#include "cli/output.hpp"
#include "cli/program.hpp"
#include "cli/usage_error.hpp"
#include "torture/rig/detour.hpp"
#include "torture/run/torture.hpp"
#include "torture/worker/worker.hpp"
#include "util/process.hpp"

namespace dlock::cli {

namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

struct TortureArguments {
  std::optional<std::string> url;
  double minutes = 1;
  std::optional<std::uint64_t> seed;
  std::string directory;  // empty: a new one here
  std::size_t workers = 4;
  std::string kind = "lock";         // of the locks: "lock", "read-write", "semaphore", "semaphore=N"
  std::optional<std::string> check;  // a directory whose history is checked; absent: faults are injected
  std::string plan;                  // of a worker, for internal use
};

class TortureCommandLine {
 public:
  TortureCommandLine() {
    set_up(app);
    app.footer(help_footer("torture"));
    // --check excludes the options for injecting faults.
    CLI::Option* check =
        app.add_option("--check", arguments.check, "Inject no faults; check the history of an earlier run")
            ->type_name("DIRECTORY");
    app.add_option("--url", arguments.url,
                   "The lock service (default: DLOCK_URL, otherwise file:// in a directory of this user)")
        ->type_name("URL")
        ->excludes(check);
    app.add_option("--minutes", arguments.minutes, "How long to inject faults (default 1)")
        ->type_name("N")
        ->check(positive_check())
        ->excludes(check);
    add_number(app, "--seed", arguments.seed, 0, std::numeric_limits<std::int64_t>::max(),
               "Inject the same faults in the same order as the run that printed it (default: random)")
        ->excludes(check);
    // One alone has no competitor; each is a process.
    add_number(app, "--workers", arguments.workers, 2, 64, "How many processes contend, 2 to 64 (default 4)")
        ->excludes(check);
    app.add_option("--kind", arguments.kind, "The kind of locks: lock (default), read-write, semaphore, semaphore=N")
        ->type_name("KIND")
        ->excludes(check);
    app.add_option("--directory", arguments.directory,
                   "Write the history to this directory (default dlock-torture-SEED)")
        ->type_name("DIRECTORY")
        ->excludes(check);
    app.add_option("--plan", arguments.plan)->group("");  // internal: starts a worker
  }

  CLI::App app{"Inject faults around the locks, and check whether they keep their promises", "dlock torture"};
  TortureArguments arguments;
};

constexpr int success = static_cast<int>(ExitCode::ok);
constexpr int something_is_wrong = static_cast<int>(ExitCode::findings);

// Short leases, so that many expire in the time.
constexpr auto lease = "2s";
// The limit of one request, and of setting up a connection.
constexpr auto response_timeout = "1s";
constexpr auto connect_timeout = "2s";
// Short enough to be typed again by people.
constexpr std::uint64_t greatest_seed = 1'000'000'000;
// More than torture can have workers; with more permits, it would test nothing.
constexpr std::uint32_t most_permits = 100;

// The user's URL, with times that make the run short, unless it sets them.
rig::UrlText with_short_times(const std::string& url) {
  rig::UrlText text(url);
  const auto set = [&](const char* parameter, const char* value) {
    if (!text.parameter(parameter)) text.set(parameter, value);
  };
  set("lease", lease);
  set("response_timeout", response_timeout);
  set("connect_timeout", connect_timeout);
  if (text.original().scheme() == "zookeeper") set("session_timeout", lease);
  if (text.original().scheme().starts_with("etcd")) set("session_ttl", lease);
  return text;
}

nanoseconds time_in(const rig::UrlText& url, const char* parameter) {
  return parse_duration(*url.parameter(parameter))->value();  // connect() has accepted it
}

struct KindOfLock {
  LockKind kind;
  std::uint32_t permits;
};

KindOfLock parse_kind(const std::string& text) {
  constexpr std::string_view with_number = "semaphore=";
  if (text == "lock") return {LockKind::lock, 1};
  if (text == "read-write") return {LockKind::read_write, 1};
  if (text == "semaphore") return {LockKind::semaphore, 2};
  if (text.starts_with(with_number)) {
    std::uint32_t permits = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + with_number.size(), end, permits);
    if (error == std::errc() && stop == end && permits > 0 && permits <= most_permits) {
      return {LockKind::semaphore, permits};
    }
    throw UsageError(fmt::format("--kind: a semaphore has 1 to {} permits", most_permits));
  }
  throw UsageError(fmt::format("--kind: \"{}\" is none of lock, read-write, semaphore and semaphore=N", text));
}

struct Service {
  Capabilities capabilities;
  nanoseconds lease;  // for how long the service keeps a lock, by its own report
};

// Acquires a lock, so that an unusable service is noticed at once.
Service look_at(const rig::UrlText& url, const std::string& lock, LockKind kind) {
  const Client client = connect(url.text(), {.label = "torture"});
  // If a lock lives as long as its process, a longer lease delays nothing.
  Service service{.capabilities = client.capabilities(), .lease = std::min<nanoseconds>(time_in(url, "lease"), 2s)};
  if (service.capabilities.scope == Scope::process) {
    throw UsageError(fmt::format("--url: locks of {}:// are within one process, and torture kills processes",
                                 service.capabilities.backend));
  }
  if (!service.capabilities.has(kind)) {
    throw UsageError(
        fmt::format("--kind: {}:// has no {} in this strategy", service.capabilities.backend, to_string(kind)));
  }
  const nanoseconds patience = 5 * std::min<nanoseconds>(time_in(url, "connect_timeout"), 2s);
  const Lease held = client.make_lock(lock).acquire({.wait = patience});
  const TimePoint until = held.valid_until();
  if (until != TimePoint::max()) service.lease = until - LeaseClock::now();
  return service;
}

std::filesystem::path new_directory(const std::string& wanted, std::uint64_t seed) {
  const std::filesystem::path directory = wanted.empty() ? fmt::format("dlock-torture-{}", seed) : wanted;
  std::error_code ec;
  std::filesystem::create_directories(directory, ec);
  if (!ec && !std::filesystem::is_empty(directory, ec) && !ec) {
    throw UsageError(fmt::format("--directory: {} is not empty", directory.string()));
  }
  if (ec) throw UsageError(fmt::format("--directory: {}: {}", directory.string(), ec.message()));
  return std::filesystem::absolute(directory);
}

int judge(const torture::Outcome& outcome) {
  print(torture::report(outcome));
  return outcome.violated() || outcome.inconclusive() ? something_is_wrong : success;
}

int check_history(const std::string& directory) {
  torture::Outcome outcome;
  try {
    outcome = torture::recheck(directory);
  } catch (const std::exception& error) {
    throw UsageError(fmt::format("--check: {}", error.what()));
  }
  return judge(outcome);
}

torture::Rules rules_for(const Service& service) {
  torture::Rules rules;
  rules.slack = 4s;
  // A session may take twice its time to end; then clients reconnect, with growing pauses.
  const nanoseconds reconnection = service.capabilities.scope == Scope::network ? 10s : 1s;
  rules.recovery = 3 * service.lease + reconnection;
  rules.settled = rules.recovery;
  return rules;
}

int run_torture(const TortureArguments& wanted, Inherited& inherited) {
  torture::Setup setup;
  setup.seed = wanted.seed.value_or(util::kernel_random() % greatest_seed);
  setup.locks = {fmt::format("dlock-torture/{}/a", setup.seed), fmt::format("dlock-torture/{}/b", setup.seed)};
  const rig::UrlText url = with_short_times(service_url(wanted.url));
  setup.direct_url = url.text();
  const KindOfLock kind = parse_kind(wanted.kind);
  setup.lock_kind = kind.kind;
  setup.permits = kind.permits;
  const Service service = look_at(url, setup.locks.front(), kind.kind);
  std::optional<rig::Detour> detour;
  setup.url = setup.direct_url;
  if (const auto hosts = rig::hosts_for_proxies(url); !hosts.empty()) {
    detour.emplace(hosts);
    setup.proxies = detour->proxies();
    setup.url = detour->through(url).text();
  } else if (service.capabilities.scope == Scope::network) {
    say("the network is left alone: no proxy can stand between clients and this service");
  }
  setup.lease = service.lease;
  setup.sound = std::min<nanoseconds>(2 * service.lease, 4s);
  setup.rules = rules_for(service);
  setup.length = std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double, std::ratio<60>>(wanted.minutes));
  setup.workers = wanted.workers;
  setup.worker = {"/proc/self/exe", "--plan"};
  setup.directory = new_directory(wanted.directory, setup.seed);

  inherited.take_over_signals();
  Interruption interruption;
  const torture::Outcome outcome = torture::run(
      setup, [&](const std::string& text) { say(fmt::format("seed {}: {}", setup.seed, text)); }, interruption.stop());
  const int status = judge(outcome);
  return interruption.signal() != 0 && !outcome.violated() ? signalled(interruption.signal()) : status;
}

int torture_main(const std::vector<std::string>& words, Inherited& inherited) {
  TortureCommandLine line;
  if (const auto status = answer_or_parse(line.app, words)) return *status;
  const TortureArguments& wanted = line.arguments;
  if (!wanted.plan.empty()) return torture::worker_main(wanted.plan);
  return wanted.check ? check_history(*wanted.check) : run_torture(wanted, inherited);
}

}  // namespace

}  // namespace dlock::cli

int main(int argc, char** argv) {
  return dlock::cli::run_program(argc, argv, &dlock::cli::torture_main);
}
