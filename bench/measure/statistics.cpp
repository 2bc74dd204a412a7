#include "bench/measure/statistics.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace dlock::bench {

namespace {

double jain_index(std::span<const double> shares) {
  double sum = 0;
  double squares = 0;
  for (const double share : shares) {
    sum += share;
    squares += share * share;
  }
  return squares > 0 ? sum * sum / (static_cast<double>(shares.size()) * squares) : 1;
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double fairness_of_turns(std::span<const std::uint64_t> turns) {
  if (turns.empty()) return 1;
  const std::uint64_t sum = std::accumulate(turns.begin(), turns.end(), std::uint64_t{0});
  const std::uint64_t each = sum / turns.size();
  std::vector<double> most_even(turns.size(), static_cast<double>(each));
  for (std::size_t i = 0; i < sum % turns.size(); ++i) ++most_even[i];
  const std::vector<double> shares(turns.begin(), turns.end());
  return jain_index(shares) / jain_index(most_even);
}

}  // namespace dlock::bench
