// The workers: starts, stops, kills and replaces them, and records that.
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
  std::vector<std::string> command{};    // of a worker; the name of its plan's file is appended
  std::vector<std::string> variables{};  // of its environment, "NAME=value"
  std::string url{};
  std::filesystem::path histories{};  // a directory
  std::filesystem::path plans{};      // a directory
  std::size_t workers = 4;
  std::function<void(pid_t)> ended = nullptr;  // called for each worker that was killed, or has crashed
  Plan plan{};  // without the number, the history and the seats, which each worker has of its own
};

// Use it on one thread, which must outlive it: see ChildProcess.
class Crew {
 public:
  // Starts all workers. The notes must outlive it.
  Crew(CrewConfig config, HistoryFile& notes);
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }
  [[nodiscard]] std::size_t member_at_seat(std::size_t seat) const noexcept { return seat / config_.plan.threads; }
  [[nodiscard]] bool stopped(std::size_t index) const { return members_[index].stopped; }
  // The number of the current process; each new one gets a new number.
  [[nodiscard]] int number(std::size_t index) const { return members_[index].number; }
  [[nodiscard]] pid_t pid(std::size_t index) const { return members_[index].process->pid(); }

  // The worker may have stopped itself already.
  void stop(std::size_t index);
  void resume(std::size_t index);
  // With SIGKILL, and starts a successor.
  void kill(std::size_t index);
  // Records and replaces workers that have ended unexpectedly.
  void look_after();
  // Continues all workers, which should then end by themselves, as the board told them. Those that have not ended in
  // time are recorded as residue, and killed.
  void await_end(std::chrono::nanoseconds limit);

 private:
  struct Member {
    std::unique_ptr<rig::ChildProcess> process;
    int number = 0;
    bool stopped = false;
  };

  void start(std::size_t index);
  // Waits for its end. Returns the exit status.
  int bury(Member& member) const;
  void note(Kind kind, const Member& member, std::string word = {}, TimePoint at = LeaseClock::now());

  CrewConfig config_;
  HistoryFile& notes_;
  std::vector<Member> members_;
  int started_ = 0;
};

}  // namespace dlock::torture
