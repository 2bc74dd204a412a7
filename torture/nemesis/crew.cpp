#include "torture/nemesis/crew.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include <dlock/duration.hpp>

namespace dlock::torture {

namespace {

constexpr std::size_t most_of_output = 2000;  // of a worker that has crashed
constexpr auto last_words = std::chrono::seconds(1);

// The functions of the kernel in which its threads wait, such as " futex_wait_queue"; empty: unknown.
std::string waits_of(pid_t pid) {
  std::string waits;
  std::error_code gone;
  std::filesystem::directory_iterator thread("/proc/" + std::to_string(pid) + "/task", gone);
  for (; !gone && thread != std::filesystem::directory_iterator(); thread.increment(gone)) {
    std::string wait;
    std::ifstream(thread->path() / "wchan") >> wait;
    waits += " " + wait;
  }
  return waits;
}

}  // namespace

Crew::Crew(CrewConfig config, HistoryFile& notes) : config_(std::move(config)), notes_(notes) {
  members_.resize(config_.workers);
  for (std::size_t member = 0; member < members_.size(); ++member) start(member);
}

void Crew::note(Kind kind, const Member& member, std::string word, TimePoint at) {
  notes_.note({.at = at, .kind = kind, .subject = member.number, .word = std::move(word)});
}

void Crew::start(std::size_t index) {
  Member& member = members_[index];
  member.number = ++started_;
  member.stopped = false;
  Plan plan = config_.plan;
  plan.process = member.number;
  plan.seed = config_.plan.seed + static_cast<std::uint64_t>(member.number);
  plan.first_seat = index * plan.threads;
  const std::string name = "process-" + std::to_string(member.number);
  plan.history = config_.histories / (name + ".jsonl");
  const auto file = config_.plans / (name + ".plan");
  save(plan, file);
  std::vector<std::string> command = config_.command;
  command.push_back(file.string());
  std::vector<std::string> variables = config_.variables;
  variables.push_back(std::string(url_variable) + "=" + config_.url);
  member.process = std::make_unique<rig::ChildProcess>(std::move(command), std::move(variables));
}

int Crew::bury(Member& member) const {
  const pid_t pid = member.process->pid();
  (void)member.process->wait_until([](const std::string&) { return false; }, last_words);  // its output ends with it
  const int status = member.process->wait();
  if (config_.ended) config_.ended(pid);
  return status;
}

void Crew::stop(std::size_t index) {
  Member& member = members_[index];
  const TimePoint before = LeaseClock::now();
  member.process->freeze();
  member.stopped = true;
  note(Kind::stopped, member, {}, before);
}

void Crew::resume(std::size_t index) {
  Member& member = members_[index];
  if (!member.stopped) return;  // it was killed meanwhile, and has a successor
  member.stopped = false;
  member.process->thaw();
  note(Kind::resumed, member);
}

void Crew::kill(std::size_t index) {
  Member& member = members_[index];
  // From here on it does nothing, however long a busy machine takes to end it.
  if (!member.stopped) stop(index);
  member.process->signal(SIGKILL);
  (void)bury(member);  // it has ended before that is noted
  note(Kind::killed, member);
  start(index);
}

void Crew::look_after() {
  for (std::size_t index = 0; index < members_.size(); ++index) {
    Member& member = members_[index];
    if (member.process->running()) continue;
    const int status = bury(member);
    note(Kind::crashed, member,
         "status " + std::to_string(status) + ", " + member.process->output().substr(0, most_of_output));
    start(index);
  }
}

void Crew::await_end(std::chrono::nanoseconds limit) {
  const TimePoint deadline = saturating_add(LeaseClock::now(), limit);
  for (std::size_t index = 0; index < members_.size(); ++index) resume(index);
  for (Member& member : members_) {
    const auto never = [](const std::string&) { return false; };
    (void)member.process->wait_until(never, deadline - LeaseClock::now());  // its output ends with it
    if (member.process->output_ended()) {
      const int status = bury(member);
      if (status != 0) {
        note(Kind::crashed, member,
             "status " + std::to_string(status) + ", " + member.process->output().substr(0, most_of_output));
      }
    } else {
      note(Kind::residue, member,
           "process " + std::to_string(member.number) +
               " does not end; its threads wait in:" + waits_of(member.process->pid()));
      member.process->signal(SIGKILL);
      (void)bury(member);
      note(Kind::killed, member);
    }
  }
}

}  // namespace dlock::torture
