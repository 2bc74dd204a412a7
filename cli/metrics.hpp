// Gauges of a job's last run, in Prometheus's text format: one line per lock and metric.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/lock_kind.hpp>

#include "cli/account.hpp"

namespace dlock::cli {

// For a run that ended now. If it failed, the time of the last success is copied from the earlier text.
[[nodiscard]] std::string metrics_text(const Account& account, const std::vector<std::string>& names, LockKind kind,
                                       std::chrono::system_clock::time_point now, std::string_view earlier);

// The file of one job. Each run replaces it atomically: a reader finds either all of it or all of the last one.
class MetricsFile {
 public:
  // Throws UsageError, naming the option, if the file cannot be written or an earlier one cannot be read.
  explicit MetricsFile(std::string path);

  // Throws std::exception; then the file was not changed. Removes lines of other locks or programs, and reports that.
  void write(const Account& account, const std::vector<std::string>& names, LockKind kind) const;

 private:
  std::string path_;
};

}  // namespace dlock::cli
