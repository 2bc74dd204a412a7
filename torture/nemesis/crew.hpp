// The workers: started, stopped, killed and replaced, and all of it noted.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "torture/history/history_file.hpp"
#include "torture/rig/child_process.hpp"
#include "torture/worker/plan.hpp"

namespace dlock::torture {

struct CrewConfig {
  std::vector<std::string> command{};    // of a worker; the name of its plan's file follows
  std::vector<std::string> variables{};  // of its environment, "NAME=value"
  std::string url{};
  std::filesystem::path histories{};  // a directory
  std::filesystem::path plans{};      // a directory
  std::size_t workers = 4;
  std::function<void(pid_t)> ended = nullptr;  // told of each worker that was killed, or has crashed
  Plan plan{};  // without the number, the history and the seats, of which each has its own
};

// One thread, which must live as long: see ChildProcess.
class Crew {
 public:
  // Starts all. The notes must outlive it.
  Crew(CrewConfig config, HistoryFile& notes);
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }
  [[nodiscard]] std::size_t member_at_seat(std::size_t seat) const noexcept { return seat / config_.plan.threads; }
  [[nodiscard]] bool stopped(std::size_t index) const { return members_[index].stopped; }
  // Of the process that is there now; each has another.
  [[nodiscard]] int number(std::size_t index) const { return members_[index].number; }
  [[nodiscard]] pid_t pid(std::size_t index) const { return members_[index].process->pid(); }

  // The member may have stopped itself already.
  void stop(std::size_t index);
  void resume(std::size_t index);
  // With SIGKILL; another takes its place.
  void kill(std::size_t index);
  // Those that have ended though they were not to are noted and replaced.
  void look_after();
  // All go on, and should end by themselves, which the board must have told them. Those that have not when the time is
  // over are noted as residue, and killed.
  void await_end(std::chrono::nanoseconds limit);

 private:
  struct Member {
    std::unique_ptr<rig::ChildProcess> process;
    int number = 0;
    bool stopped = false;
  };

  void start(std::size_t index);
  // Waits for its end. The exit status.
  int bury(Member& member) const;
  void note(Kind kind, const Member& member, std::string word = {}, TimePoint at = LeaseClock::now());

  CrewConfig config_;
  HistoryFile& notes_;
  std::vector<Member> members_;
  int started_ = 0;
};

}  // namespace dlock::torture
