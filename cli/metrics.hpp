// Gauges of the last run of a job, in the text format that Prometheus reads: a line for each name of a lock.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/lock_kind.hpp>

#include "cli/account.hpp"

namespace dlock::cli {

// Of a run that ended now. Where it did not succeed, the time of the last success is copied from the earlier text.
[[nodiscard]] std::string metrics_text(const Account& account, const std::vector<std::string>& names, LockKind kind,
                                       std::chrono::system_clock::time_point now, std::string_view earlier);

// The file of one job. Each run replaces it, so that a reader finds all of it or the one before.
class MetricsFile {
 public:
  // Throws UsageError, naming the option, where the file cannot be written or an earlier one cannot be read.
  explicit MetricsFile(std::string path);

  // Throws std::exception; then the file was not changed. Lines of other locks or programs go, which is said.
  void write(const Account& account, const std::vector<std::string>& names, LockKind kind) const;

 private:
  std::string path_;
};

}  // namespace dlock::cli
