#include "torture/nemesis/process_faults.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "torture/nemesis/used_up_descriptors.hpp"

namespace dlock::torture {

namespace {

using namespace std::chrono_literals;

// How long to wait for a process that springs the trap.
constexpr auto patience = 500ms;

class ProcessFaults {
 public:
  ProcessFaults(Crew& crew, const Board& board, std::uint64_t seed) : crew_(crew), board_(board), dice_(seed) {}

  // Stops the next process that reaches the step, right there.
  Heal stop_at(Step step) {
    const auto member = catch_at(step);
    return member ? resuming(*member) : nullptr;
  }
  Heal kill_at(Step step) {
    const auto member = catch_at(step);
    if (!member) return nullptr;
    crew_.kill(*member);
    return [] {};
  }
  Heal stop_waiter() {
    const auto member = waiter();
    if (!member) return nullptr;
    crew_.stop(*member);
    return resuming(*member);
  }
  Heal kill_waiter() {
    const auto member = waiter();
    if (!member) return nullptr;
    crew_.kill(*member);
    return [] {};
  }
  Heal use_up_descriptors() {
    const std::size_t seat = dice_.below(board_.size());
    const std::size_t member = crew_.member_at_seat(seat);
    if (!all_contend(member) || crew_.stopped(member)) return nullptr;
    try {
      auto none_left = std::make_shared<UsedUpDescriptors>(crew_.pid(member));
      return [none_left]() mutable { none_left.reset(); };
    } catch (const std::system_error&) {
      return nullptr;  // it has crashed, which the crew records
    }
  }
  Step any_step_of_holder() {
    static const std::vector<Step> steps{Step::granted, Step::looking, Step::looked, Step::wrote, Step::releasing};
    return dice_.pick(steps);
  }

 private:
  std::optional<std::size_t> catch_at(Step step) {
    board_.set_trap(step);
    const TimePoint end = LeaseClock::now() + patience;
    while (!board_.caught() && LeaseClock::now() < end) std::this_thread::sleep_for(200us);
    auto seat = board_.caught();
    if (!seat) seat = board_.remove_trap();
    if (!seat) return std::nullopt;
    const std::size_t member = crew_.member_at_seat(*seat);
    crew_.stop(member);
    return member;
  }

  // Whether the seat belongs to the current process, not to an earlier one.
  [[nodiscard]] bool contends(std::size_t seat) const {
    return board_.seat(seat).process.load() == crew_.number(crew_.member_at_seat(seat));
  }
  [[nodiscard]] bool all_contend(std::size_t member) const {
    for (std::size_t seat = 0; seat < board_.size(); ++seat) {
      if (crew_.member_at_seat(seat) == member && !contends(seat)) return false;
    }
    return true;
  }

  std::optional<std::size_t> waiter() {
    std::vector<std::size_t> members;
    for (std::size_t seat = 0; seat < board_.size(); ++seat) {
      const std::size_t member = crew_.member_at_seat(seat);
      const bool waits = contends(seat) && board_.seat(seat).step.load() == Step::asking;
      if (waits && !crew_.stopped(member)) members.push_back(member);
    }
    return members.empty() ? std::nullopt : std::optional(dice_.pick(members));
  }

  Heal resuming(std::size_t member) {
    return [this, member] {
      board_.let_go();
      crew_.resume(member);
    };
  }

  Crew& crew_;
  const Board& board_;
  Dice dice_;
};

}  // namespace

std::vector<Fault> process_faults(Crew& crew, const Board& board, std::uint64_t seed) {
  const auto faults = std::make_shared<ProcessFaults>(crew, board, seed);
  const auto stop_holder = [faults] { return faults->stop_at(faults->any_step_of_holder()); };
  const auto kill_holder = [faults] { return faults->kill_at(faults->any_step_of_holder()); };
  std::vector<Fault> all{{"holder stopped before a write", "", [faults] { return faults->stop_at(Step::looked); },
                          Linger::beyond_lease, 4},
                         {"holder stopped before a look", "", [faults] { return faults->stop_at(Step::looking); },
                          Linger::beyond_lease, 2},
                         {"holder stopped between steps", "", stop_holder, Linger::beyond_lease, 2},
                         {"holder killed", "", kill_holder, Linger::briefly, 4},
                         {"waiter stopped", "", [faults] { return faults->stop_waiter(); }, Linger::beyond_lease},
                         {"waiter killed", "", [faults] { return faults->kill_waiter(); }, Linger::briefly}};
  if (std::string why_not; UsedUpDescriptors::available(why_not)) {
    all.push_back({"file descriptors used up", "", [faults] { return faults->use_up_descriptors(); }});
  }
  return all;
}

}  // namespace dlock::torture
