// dlock leader: the leader of an election.
#include <poll.h>

#include <array>
#include <cerrno>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <dlock/client.hpp>

#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/json.hpp"
#include "cli/location.hpp"
#include "cli/output.hpp"
#include "cli/reporter.hpp"
#include "cli/session.hpp"
#include "cli/signal_queue.hpp"
#include "cli/system.hpp"

namespace dlock::cli {

namespace {

// One line: the value, a tab, and the holder; empty if there is no leader.
std::string line_of(const std::optional<Leader>& leader, const Arguments& arguments) {
  if (arguments.json) {
    Json json = {{"name", arguments.name()}, {"leader", nullptr}};
    if (leader) {
      json["leader"] = {{"value", leader->value}, {"holder", leader->holder}, {"token", leader->token.value()}};
    }
    return json_line(json);
  }
  return leader ? printable(leader->value) + "\t" + printable(leader->holder) + "\n" : "\n";
}

// The newest leader that an observer reported, until it is taken.
class Newest {
 public:
  void put(const std::optional<Leader>& leader) {
    const std::scoped_lock lock(mutex_);
    leader_ = leader;
    event_.notify();
  }
  // Readable when there may be something to take.
  [[nodiscard]] int fd() const noexcept { return event_.fd(); }
  std::optional<std::optional<Leader>> take() {
    const std::scoped_lock lock(mutex_);
    event_.clear();
    return std::exchange(leader_, std::nullopt);
  }

 private:
  const Event event_;
  std::mutex mutex_;
  std::optional<std::optional<Leader>> leader_;  // guarded by mutex_
};

// Until INT, TERM, HUP or QUIT. If the output is read slowly, outdated leaders are skipped.
void follow(const Election& election, const Arguments& arguments, const Inherited& inherited) {
  SignalQueue signals;
  Newest newest;
  std::optional<Printing> printing;
  const Observation observation = election.observe([&](const std::optional<Leader>& leader) { newest.put(leader); });
  for (;;) {
    while (const std::optional<int> signal = signals.next()) {
      if (SignalQueue::ends(*signal) && !inherited.ignored(*signal)) return;
      if (*signal == SIGTSTP) (void)signals.stop_job();  // if it cannot stop, TSTP has no effect, as usual
    }
    if (!printing) {
      if (const auto leader = newest.take()) printing.emplace(line_of(*leader, arguments));
    }
    std::array sources{
        pollfd{.fd = signals.fd(), .events = POLLIN, .revents = 0},
        pollfd{.fd = printing ? printing->done_fd() : newest.fd(), .events = POLLIN, .revents = 0},
    };
    if (::poll(sources.data(), sources.size(), -1) < 0 && errno != EINTR) check(-1, "poll");
    if (!printing || sources.back().revents == 0) continue;
    printing->check();
    printing.reset();
  }
}

}  // namespace

int leader(const Arguments& arguments, Inherited& inherited) {
  if (arguments.follow) {
    inherited.take_over_signals();
    start_messages();
  }
  const Client client = connect(service_url(arguments.url),
                                {.label = "dlock", .observer = arguments.follow ? reporter_for(arguments) : nullptr});
  const Election election = client.make_election(arguments.name());
  if (arguments.follow) {
    follow(election, arguments, inherited);
    return static_cast<int>(ExitCode::ok);
  }
  const std::optional<Leader> leader = election.leader();
  if (leader || arguments.json) print(line_of(leader, arguments));
  if (leader) return static_cast<int>(ExitCode::ok);
  if (!arguments.quiet) say(fmt::format("nobody leads \"{}\"", arguments.name()));
  return static_cast<int>(ExitCode::findings);
}

}  // namespace dlock::cli
