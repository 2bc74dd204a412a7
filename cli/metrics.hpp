// Counters over the runs of a job, in the text format that Prometheus reads: a line for each name of a lock.
#pragma once

#include <array>
#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/lock_kind.hpp>

#include "cli/account.hpp"

namespace dlock::cli {

class Metrics {
 public:
  // Goes on from what an earlier text() says. False: some of it was not understood, and is forgotten.
  // NOLINTNEXTLINE(modernize-use-nodiscard): done for its effect
  bool read(std::string_view text);

  // Each of the names was waited for and held.
  void add(const Account& account, const std::vector<std::string>& names, LockKind kind,
           std::chrono::system_clock::time_point now);

  [[nodiscard]] std::string text() const;

 private:
  bool read_line(std::string_view line);

  // The values of each metric by their labels, as these are written.
  std::map<std::string, std::map<std::string, double>, std::less<>> values_;
};

// The same in a file that may serve several jobs at the same time. Each update replaces the file, so that a reader
// finds all of it or the one before. Updates are made one at a time by a lock (flock) on the file.
class MetricsFile {
 public:
  // Makes the file if it is missing. Throws UsageError, naming the option, where the file cannot be written or an
  // earlier one cannot be read.
  explicit MetricsFile(std::string path);

  // Throws std::exception; then nothing was changed. Does not wait for longer than a few seconds for other updates.
  // What the earlier file says and is not understood is lost, which is said.
  void add(const Account& account, const std::vector<std::string>& names, LockKind kind) const;

 private:
  std::string path_;
};

}  // namespace dlock::cli
