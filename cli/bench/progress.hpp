// The progress of "dlock bench": on a terminal, one line that is updated; in a pipe, nothing.
#pragma once

#include <chrono>
#include <string>

#include "bench/session.hpp"

namespace dlock::cli {

class BenchProgress final : public bench::Progress {
 public:
  // Writes to standard error.
  BenchProgress() noexcept;
  BenchProgress(const BenchProgress&) = delete;
  BenchProgress& operator=(const BenchProgress&) = delete;
  ~BenchProgress() override;

  void step(const std::string& service, const std::string& what, std::chrono::nanoseconds remaining) override;
  void problem(const bench::Problem& problem) override;

 private:
  void clear() noexcept;

  bool on_terminal_;
  bool shown_ = false;
};

// "12 min", "40 s".
[[nodiscard]] std::string remaining_text(std::chrono::nanoseconds remaining);

// The problem, in one line.
[[nodiscard]] std::string problem_text(const bench::Problem& problem);

}  // namespace dlock::cli
