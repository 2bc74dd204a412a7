// The strategies of the backend, for tests of each of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "backends/postgres/options.hpp"

namespace dlock::test {

inline constexpr postgres::Strategy all_strategies[] = {postgres::Strategy::table, postgres::Strategy::optimistic,
                                                        postgres::Strategy::for_update, postgres::Strategy::advisory};

inline std::string strategy_name(const ::testing::TestParamInfo<postgres::Strategy>& info) {
  std::string name(postgres::to_string(info.param));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace dlock::test
