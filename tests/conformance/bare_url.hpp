// The program of the suite against a service of which it knows no more than the URL.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include <dlock/conformance/suite.hpp>

#include "mutants/run_program.hpp"

namespace dlock::conformance {

// With plain locks; with locks of all kinds where the environment asks for that, which takes four times as long. What
// is left untested for want of means is listed, and is no failure.
inline void expect_to_conform(const std::string& url) {
  std::vector<std::string> arguments{DLOCK_CONFORMANCE_PROGRAM, "--url", url, "--allow-untested"};
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the tests never change the environment
  if (std::getenv("DLOCK_CONFORMANCE_WHOLE") == nullptr) {
    std::string subject = url.substr(0, url.find(':'));
    for (char& c : subject) c = c == '-' ? '_' : c;
    arguments.push_back("--gtest_filter=*/" + subject + ":-ClientContract*:*C15_*");
  }
  const Finished finished = run_program(arguments, std::chrono::minutes(2));
  EXPECT_EQ(finished.status, exit_passed) << finished.output;
  EXPECT_TRUE(finished.output.starts_with("dlock-conformance: ")) << finished.output;
  EXPECT_NE(finished.output.find(" tests, about "), std::string::npos) << finished.output;
}

}  // namespace dlock::conformance
