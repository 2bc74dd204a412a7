#include "bench/report/ranking.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "bench/report/selection.hpp"

namespace dlock::bench {

namespace {

constexpr double smallest_difference = 0.05;

bool alike(const Figure& a, const Figure& b) {
  if (a.lowest() <= b.highest() && b.lowest() <= a.highest()) return true;
  return std::abs(a.median() - b.median()) <= smallest_difference * std::max(a.median(), b.median());
}

}  // namespace

Ranking rank(std::vector<Contender> contenders, Better better) {
  std::erase_if(contenders, [](const Contender& each) {
    return each.figure == nullptr || !median_of(each.measurement, each.figure->name);
  });
  std::stable_sort(contenders.begin(), contenders.end(), [&](const Contender& a, const Contender& b) {
    const double first = a.figure->median();
    const double second = b.figure->median();
    return better == Better::higher ? first > second : first < second;
  });
  Ranking ranking;
  for (const Contender& each : contenders) {
    const bool best = ranking.best.empty() || alike(*ranking.best.front().figure, *each.figure);
    (best ? ranking.best : ranking.rest).push_back(each);
  }
  return ranking;
}

std::string names_text(const std::vector<Contender>& contenders) {
  std::string text;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    if (i > 0) text += i + 1 == contenders.size() ? " or " : ", ";
    text += contenders[i].service;
  }
  return text;
}

}  // namespace dlock::bench
