// Who is best at something.
#pragma once

#include <string>
#include <vector>

#include "bench/report/result.hpp"

namespace dlock::bench {

struct Contender {
  std::string service;
  const Measurement* measurement;
  const Figure* figure;
};

struct Ranking {
  std::vector<Contender> best;  // those whom noise does not tell from the first; the first one is the first
  std::vector<Contender> rest;  // from better to worse
};

// Leaves out whoever has no such figure.
[[nodiscard]] Ranking rank(std::vector<Contender> contenders, Better better);

// "redis queue", "redis queue or redis broadcast", "a, b or c"
[[nodiscard]] std::string names_text(const std::vector<Contender>& contenders);

}  // namespace dlock::bench
