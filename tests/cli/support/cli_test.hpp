// The fixture of the tests that run the dlock command: a lock directory of their own.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "support/process.hpp"

namespace dlock::cli::test {

class CliTest : public testing::Test {
 protected:
  [[nodiscard]] std::string url() const { return "file://" + scratch_.path(); }

  // dlock VERB --url URL WORDS...
  [[nodiscard]] std::vector<std::string> dlock(const std::string& verb, std::vector<std::string> words = {}) const {
    std::vector<std::string> command{dlock_path(), verb, "--url", url()};
    command.insert(command.end(), words.begin(), words.end());
    return command;
  }
  // dlock run --url URL OPTIONS... job -- probe WORDS...
  [[nodiscard]] std::vector<std::string> run_probe(std::vector<std::string> words,
                                                   std::vector<std::string> options = {}) const {
    std::vector<std::string> command = dlock("run", std::move(options));
    for (const char* word : {"job", "--"}) command.emplace_back(word);
    command.push_back(probe_path());
    command.insert(command.end(), words.begin(), words.end());
    return command;
  }
  // Whether a try finds the lock free.
  [[nodiscard]] bool lock_is_free() const { return run(dlock("run", {"--try", "job", "--", "true"})).status == 0; }

  // The file backend's locks are lost when their file is removed.
  void remove_lock_files() const {
    for (const auto& entry : std::filesystem::directory_iterator(scratch_.path())) {
      std::filesystem::remove(entry.path());
    }
  }

  [[nodiscard]] const ScratchDirectory& scratch() const { return scratch_; }

 private:
  ScratchDirectory scratch_;
};

// "ready 12 34" as {12, 34}.
inline std::vector<pid_t> pids_in(const std::string& line) {
  std::istringstream words(line);
  std::string ready;
  words >> ready;
  std::vector<pid_t> pids;
  for (pid_t pid = 0; words >> pid;) pids.push_back(pid);
  return pids;
}

}  // namespace dlock::cli::test
