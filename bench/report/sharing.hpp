// What came of locks that several hold at the same time: a column for each kind of measurement.
#pragma once

#include <string>
#include <vector>

#include "bench/report/result.hpp"

namespace dlock::bench {

struct SharingColumn {
  Parameters parameters;
  const char* figure;
  const char* unit;
  std::string what;  // "95 % reads", "writer, p50"
  std::string who;   // "8 callers", "8 readers"
};

// In the order of the report; none where nothing of it was measured.
[[nodiscard]] std::vector<SharingColumn> sharing_columns(const Report& report);

// dlock's measurement for a column; nullptr: the service has none.
[[nodiscard]] const Measurement* measurement_of(const Report& report, const std::string& service,
                                                const SharingColumn& column) noexcept;

}  // namespace dlock::bench
