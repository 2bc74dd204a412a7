// Which service, for what: as far as the data of one report can tell.
#pragma once

#include <string>
#include <vector>

#include "bench/report/overview.hpp"
#include "bench/report/result.hpp"

namespace dlock::bench {

struct Advice {
  std::string question;  // "Many wait for one lock"
  std::string answer;    // "redis queue"
  std::string why;       // "hand-off 92.1 µs (p50) with 256 waiters"
};

// Services that cannot be told apart within the noise are named together. Never advises "memory", which no two
// processes can share, and "file" for one machine only. Empty where nothing was measured.
[[nodiscard]] std::vector<Advice> advice_of(const Report& report);

// A service that does more work for a hand-off the more wait.
struct Herd {
  std::string service;
  Counted few;  // operations of the server, with so many waiters
  Counted many;
};

[[nodiscard]] std::vector<Herd> herds_of(const Report& report);

}  // namespace dlock::bench
