// Where workers say what they are about, so that faults can be aimed: memory that the processes share.
//
//   Board board(file, 8);                       // who breaks things; a worker opens the same file
//   board.set_trap(Step::looked);               // the next one to have looked is to stop right there
//   if (auto seat = board.caught()) ...         // it has: stop or kill its process, then let_go()
//
// Each thread that contends has a seat. A value that was read may be old by the time that it is used; a trap is not: it
// is sprung by the victim itself.
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
  granted,    // has been told that it has it
  looking,    // is about to look whether it still has it
  looked,     // has just found it held, and is about to write
  wrote,      // has just written
  releasing,  // is about to give it back
};

class Board {
 public:
  struct Seat {
    std::atomic<int> process;  // its number, once it contends
    std::atomic<Step> step;
    std::atomic<std::uint32_t> lock;  // which of the locks
  };

  // Makes the file, or opens it when it is there. Throws std::system_error.
  Board(const std::filesystem::path& file, std::size_t seats);
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;
  ~Board();

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] Seat& seat(std::size_t index) const noexcept;

  // --- For who breaks things ---
  // The next contender to come to this step does not go on until it is let go.
  void set_trap(Step step) const noexcept;
  // The seat that was caught; then the trap is removed.
  [[nodiscard]] std::optional<std::size_t> caught() const noexcept;
  // No process is to be caught any more. One that was is answered.
  std::optional<std::size_t> remove_trap() const noexcept;
  // The process that was caught goes on, unless it is stopped.
  void let_go() const noexcept;
  // The workers are to end in good order.
  void call_it_a_day() const noexcept;

  // --- For workers ---
  // Says so, and waits if there is a trap.
  void reach(std::size_t seat, Step step) const noexcept;
  [[nodiscard]] bool day_is_over() const noexcept;

 private:
  struct Page;

  std::size_t size_;
  std::size_t bytes_;
  Page* page_ = nullptr;
};

}  // namespace dlock::torture
