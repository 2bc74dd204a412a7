// The strategies of the backend, for tests of each of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "backends/postgres/options.hpp"
#include "default_strategy.hpp"
#include "tests/support/sanitizers.hpp"

namespace dlock::test {

inline constexpr postgres::Strategy all_strategies[] = {postgres::Strategy::table, postgres::Strategy::optimistic,
                                                        postgres::Strategy::for_update, postgres::Strategy::advisory};

// Those of them that a test of each is run for. Optimistic and table are the same code with other statements, of which
// a sanitizer sees nothing.
inline std::vector<postgres::Strategy> tested(std::vector<postgres::Strategy> strategies = {std::begin(all_strategies),
                                                                                            std::end(all_strategies)}) {
  if (dlock::test::sanitized) std::erase(strategies, postgres::Strategy::optimistic);
  return wanted_strategies("postgres", std::move(strategies));
}

inline std::string strategy_name(const ::testing::TestParamInfo<postgres::Strategy>& info) {
  std::string name(postgres::to_string(info.param));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace dlock::test
