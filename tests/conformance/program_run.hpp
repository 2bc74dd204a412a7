// Runs a program of the suite, and collects its output.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <dlock/conformance/suite.hpp>

#include "torture/rig/child_process.hpp"

namespace dlock::conformance {

struct Finished {
  int status;          // the exit status, or 128 + signal
  std::string output;  // on standard output and standard error
};

// Waits for the end. guard: the time after which the suite in that program reports a hang.
inline Finished run_program(std::vector<std::string> command, std::chrono::milliseconds guard) {
  // This process's shard does not apply to the program.
  rig::ChildProcess program(std::move(command), {"DLOCK_CONFORMANCE_GUARD_MS=" + std::to_string(guard.count()),
                                                 "GTEST_TOTAL_SHARDS=1", "GTEST_SHARD_INDEX=0"});
  // Until it closes its output; ctest ends a hang.
  (void)program.wait_until([](const std::string&) { return false; }, std::chrono::hours(1));
  const int status = program.wait();
  return {status, program.output()};
}

// Runs the program against a service of which it knows only the URL: with plain locks; or with locks of all kinds if
// the environment requests that, which takes four times as long. Tests that it cannot run are listed, and are no
// failure.
inline void expect_to_conform(const std::string& url) {
  std::vector<std::string> command{DLOCK_CONFORMANCE_PROGRAM, "--url", url, "--allow-untested"};
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the tests never change the environment
  if (std::getenv("DLOCK_CONFORMANCE_WHOLE") == nullptr) {
    std::string subject = url.substr(0, url.find(':'));
    for (char& c : subject) c = c == '-' ? '_' : c;
    command.push_back("--gtest_filter=*/" + subject + ":-ClientContract*:*C15_*");
  }
  const Finished finished = run_program(std::move(command), std::chrono::minutes(2));
  EXPECT_EQ(finished.status, exit_passed) << finished.output;
  EXPECT_TRUE(finished.output.starts_with("dlock-conformance: ")) << finished.output;
  EXPECT_NE(finished.output.find(" tests, about "), std::string::npos) << finished.output;
}

}  // namespace dlock::conformance
