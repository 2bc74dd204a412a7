// A thread that acquires locks, uses them and releases them, again and again, in every way that the library has.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include <dlock/client.hpp>

#include "torture/dice.hpp"
#include "torture/history/history_file.hpp"
#include "torture/worker/board.hpp"
#include "torture/worker/plan.hpp"
#include "torture/worker/resource.hpp"

namespace dlock::torture {

class Contender {
 public:
  Contender(const Plan& plan, const Client& client, const Board& board, HistoryFile& history, std::size_t seat,
            std::atomic<std::uint64_t>& attempts);

  // Until the run has ended.
  void run();

 private:
  struct Turn {
    std::size_t lock;
    Mode mode;
    std::uint64_t attempt;
    AcquireOptions options;
    std::optional<std::chrono::nanoseconds> cancel_after;  // besides the end of the run
  };

  void turn();
  [[nodiscard]] Turn plan_turn();
  [[nodiscard]] std::optional<Lease> acquire(const Turn& turn);
  [[nodiscard]] Lease acquire(const Turn& turn, const AcquireOptions& options, std::error_code& ec);
  void work_under(const Turn& turn, Lease lease);
  // Returns whether the lock is still held.
  [[nodiscard]] bool step_under(const Turn& turn, const Lease& lease);
  void give_back(const Turn& turn, Lease& lease);
  void note(const Turn& turn, Kind kind, Event event = {});
  void rest(std::chrono::nanoseconds least, std::chrono::nanoseconds most);

  const Plan& plan_;
  const Client& client_;
  const Board& board_;
  HistoryFile& history_;
  const std::size_t seat_;
  std::atomic<std::uint64_t>& attempts_;
  Dice dice_;
  ResourceClient resource_;
};

}  // namespace dlock::torture
