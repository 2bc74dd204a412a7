// The conformance suite: every line of dlock's contract as a test, for any backend.
//
//   int main(int argc, char** argv) {
//     dlock::register_backend("mine", make_my_backend);
//     dlock::conformance::add_subject({"mine", [] { return std::make_unique<MyFixture>(); }});
//     return dlock::conformance::run(argc, argv);
//   }
//
// Tests are picked by Capabilities and by what the fixture can do. At the end the suite lists what it could not test,
// and says so in its exit status. Environment:
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

// One way to set a service up.
struct Subject {
  std::string name;  // letters, digits and underscores: becomes part of the tests' names
  std::function<std::unique_ptr<Fixture>()> make;
  // Also those tests whose outcome is the client's alone, whatever the backend. One subject of many is enough.
  bool client_tests = true;
  // The kinds of locks to test; the backend must have them.
  std::vector<LockKind> kinds = {LockKind::lock};
  // What this subject leaves untested, each as the report names it but for the subject, e.g.
  // "Contract.C09_AWaitWhoseAnswerIsLostEndsWithTheLock". Then run() fails where that is not so: when a test was left
  // out that is not listed, when one was run that is, and when there is no such test. Of the tests that exist, only
  // those count that were selected to run. nullopt: nothing is compared, and what was left out is exit_untested.
  std::optional<std::vector<std::string>> untested = std::nullopt;
};

// Before run().
void add_subject(Subject subject);

// What run() returns.
inline constexpr int exit_passed = 0;  // every test that applies passed
inline constexpr int exit_failed = 1;  // some test failed, none ran, or not that was untested which was to be
inline constexpr int exit_usage = 2;   // an argument that is not known, or (dlock-conformance) a service of no use
inline constexpr int exit_untested =
    3;  // nothing failed, but some tests that apply could not be run, and none was listed

// Runs the tests on all subjects; takes GoogleTest's flags from the command line. Call it first in main(), right after
// backends and subjects are registered: it also serves as the main function of the helper processes that tests start
// from this same program.
[[nodiscard]] int run(int argc, char** argv);

// For a main() that reads the command line itself before run(): the part of run() that serves helper processes. The
// exit status if this is one of them, else nullopt.
[[nodiscard]] std::optional<int> run_as_helper(int argc, char** argv);

}  // namespace dlock::conformance
