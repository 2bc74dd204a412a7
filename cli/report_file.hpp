// A file that is written as a whole, once its content is complete.
#pragma once

#include <string>

#include "cli/system.hpp"

namespace dlock::cli {

class ReportFile {
 public:
  // Checks that the file can be written, long before that is done. Throws UsageError naming the option. An older file
  // of that name stays until write(), and the new one gets its permissions. What is not a regular file, such as a pipe,
  // /dev/stderr or /dev/fd/3, is written to instead.
  ReportFile(const char* option, std::string path);
  ReportFile(const ReportFile&) = delete;
  ReportFile& operator=(const ReportFile&) = delete;
  ~ReportFile();

  // Once. Throws OutputError.
  void write(const std::string& text);

 private:
  [[nodiscard]] bool in_place() const noexcept { return part_.empty(); }
  void open_part();

  std::string path_;
  std::string part_;  // empty: written in place
  UniqueFd fd_;
};

}  // namespace dlock::cli
