// The workers' current steps, for aiming faults: memory shared by the processes.
//
//   Board board(file, 8);                       // who breaks things; a worker opens the same file
//   board.set_trap(Step::looked);               // the next one to have looked is to stop right there
//   if (auto seat = board.caught()) ...         // it has: stop or kill its process, then let_go()
//
// Each contending thread has a seat. A value may be outdated when it is used, but not a trap: the victim itself springs
// it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>

namespace dlock::torture {

// What a contender does next, or has just done.
enum class Step : std::uint32_t {
  idle,
  asking,     // waits for the lock
  granted,    // has got the lock
  looking,    // is about to call held()
  looked,     // held() was true, and it is about to write
  wrote,      // has just written
  releasing,  // is about to release
};

class Board {
 public:
  struct Seat {
    std::atomic<int> process;  // the number of its process, once it contends
    std::atomic<Step> step;
    std::atomic<std::uint32_t> lock;  // the lock's index
  };

  // Creates the file, or opens it if it exists. Throws std::system_error.
  Board(const std::filesystem::path& file, std::size_t seats);
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;
  ~Board();

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] Seat& seat(std::size_t index) const noexcept;

  // --- For the process that injects faults ---
  // The next contender that reaches this step waits there until let_go().
  void set_trap(Step step) const noexcept;
  // The seat that sprung the trap.
  [[nodiscard]] std::optional<std::size_t> caught() const noexcept;
  // Removes the trap, unless it was sprung; then returns the seat.
  std::optional<std::size_t> remove_trap() const noexcept;
  // Lets the caught thread continue, unless its process is stopped.
  void let_go() const noexcept;
  // Asks the workers to end normally.
  void call_it_a_day() const noexcept;

  // --- For workers ---
  // Records the step, and waits if there is a trap.
  void reach(std::size_t seat, Step step) const noexcept;
  [[nodiscard]] bool day_is_over() const noexcept;

 private:
  struct Page;

  std::size_t size_;
  std::size_t bytes_;
  Page* page_ = nullptr;
};

}  // namespace dlock::torture
