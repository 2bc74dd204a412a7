// The conformance suite: every line of dlock's contract as a test, for any backend.
//
//   int main(int argc, char** argv) {
//     dlock::register_backend("mine", make_my_backend);
//     dlock::conformance::add_subject({"mine", [] { return std::make_unique<MyFixture>(); }});
//     return dlock::conformance::run(argc, argv);
//   }
//
// Tests are selected by Capabilities and by the fixture's features. At the end, the suite lists what it could not test,
// which also decides its exit status. Environment:
//   DLOCK_CONFORMANCE_GUARD_MS   how long to wait for something that must happen before calling it a hang (60000)
//   DLOCK_CONFORMANCE_LEASE_MS   the length of leases that tests let run out in real time (300; 600 with a sanitizer)
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dlock/conformance/fixture.hpp>

namespace dlock::conformance {

// One setup of a service.
struct Subject {
  std::string name;  // letters, digits and underscores: becomes part of the tests' names
  std::function<std::unique_ptr<Fixture>()> make;
  // Also the tests whose outcome depends on the client only, not on the backend. One subject of many is enough.
  bool client_tests = true;
  // The kinds of locks to test; the backend must have them.
  std::vector<LockKind> kinds = {LockKind::lock};
  // The tests that this subject leaves untested, as the report names them, without the subject, e.g.
  // "Contract.C09_AWaitWhoseAnswerIsLostEndsWithTheLock". run() fails if the list is wrong: if an unlisted test was
  // left out, if a listed one was run, or if there is no such test. Only tests selected to run count. nullopt: nothing
  // is compared, and what was left out is exit_untested.
  std::optional<std::vector<std::string>> untested = std::nullopt;
};

// Call it before run().
void add_subject(Subject subject);

// What run() returns.
inline constexpr int exit_passed = 0;    // every test that applies passed
inline constexpr int exit_failed = 1;    // some test failed, none ran, or Subject::untested is wrong
inline constexpr int exit_usage = 2;     // an unknown argument, or (dlock-conformance) an unusable service
inline constexpr int exit_untested = 3;  // no failure, but some applicable tests could not be run and were not listed

// Runs the tests on all subjects, with GoogleTest's flags from the command line. Call it first in main(), right after
// registering backends and subjects: it is also the main function of the helper processes that tests start from this
// program.
[[nodiscard]] int run(int argc, char** argv);

// For a main() that parses the command line before run(): the part of run() for helper processes. The exit status if
// this is one of them, else nullopt.
[[nodiscard]] std::optional<int> run_as_helper(int argc, char** argv);

}  // namespace dlock::conformance
