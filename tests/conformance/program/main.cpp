// dlock-conformance: runs the conformance suite against a live service.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/conformance/suite.hpp>
#include <dlock/dlock.hpp>

#include "suite/wait.hpp"

namespace {

using Seconds = std::chrono::duration<double>;

// The scheme, as part of the tests' names.
std::string subject_name(const std::string& url) {
  std::string name = url.substr(0, url.find(':'));
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name.empty() ? "url" : name;
}

// The measured times that determine the length of a run.
struct Pace {
  Seconds first_lock{};  // to connect, acquire a lock and release it
  Seconds next_lock{};   // to acquire another one and release it
  Seconds kept{};        // how long the lock of a killed process is kept
};

// Acquires and releases a lock, so that a problem of the service is reported once, not by every test. The client
// requests a session as short as those of the processes that the suite kills.
Pace try_out(const std::string& url, const dlock::Capabilities& its) {
  using namespace dlock;
  const TimePoint start = LeaseClock::now();
  const Client client = connect(
      url, {.lease = std::clamp<std::chrono::nanoseconds>(conformance::short_session(), its.min_lease, its.max_lease)});
  Pace pace;
  const auto take_one = [&] {
    if (auto lease = client.make_lock("dlock-conformance/try-out").try_acquire()) {
      if (its.lease_kind == LeaseKind::session) pace.kept = lease->valid_until() - LeaseClock::now();
      (void)lease->release();
    }
    return LeaseClock::now();
  };
  try {
    const TimePoint first = take_one();
    pace.first_lock = first - start;
    pace.next_lock = take_one() - first;
  } catch (const Error& e) {
    throw Error(Failure{e.code(), client.url() + " gives no lock: " + e.detail()});
  }
  if (its.lease_kind == LeaseKind::per_lock) pace.kept = conformance::short_lease();
  if (its.scope == Scope::process) pace.kept = {};  // no other process is killed
  return pace;
}

// Announces, before the tests, about how long they will take.
class Announcement final : public ::testing::EmptyTestEventListener {
 public:
  explicit Announcement(Pace pace) : pace_(pace) {}

  void OnTestProgramStart(const ::testing::UnitTest& all) override {
    int killing = 0;
    for (int i = 0; i < all.total_test_suite_count(); ++i) {
      const ::testing::TestSuite& tests = *all.GetTestSuite(i);
      if (std::string_view(tests.name()).ends_with("CrashContract")) killing = tests.test_to_run_count();
    }
    const int count = all.test_to_run_count();
    const Seconds lease = dlock::conformance::short_lease();
    const Seconds whole =
        count * (clients_a_test * pace_.first_lock + locks_a_test * pace_.next_lock + leases_a_test * lease) +
        killing * ends_later_by * pace_.kept;
    std::cout << "dlock-conformance: " << count << (count == 1 ? " test, about " : " tests, about ") << text(whole);
    if (killing > 0 && pace_.kept > lease) {
      std::cout << "; each that kills processes may wait until a session of " << text(pace_.kept) << " has ended";
    }
    std::cout << std::endl;
  }

 private:
  // Measured with all backends of this repository: the averages of a test that does not wait for the end of a session.
  static constexpr double clients_a_test = 2;
  static constexpr double locks_a_test = 6;
  static constexpr double leases_a_test = 0.13;
  static constexpr double ends_later_by = 1.25;  // services look for expired sessions at intervals

  static std::string text(Seconds time) {
    const bool in_minutes = time > std::chrono::minutes(2);
    return std::to_string(static_cast<long>(std::ceil(time.count() / (in_minutes ? 60 : 1)))) +
           (in_minutes ? " min" : " s");
  }

  const Pace pace_;
};

}  // namespace

int main(int argc, char** argv) {
  namespace conformance = dlock::conformance;
  if (const auto status = conformance::run_as_helper(argc, argv)) return *status;

  CLI::App app("Tests every line of dlock's contract against a live lock service.", "dlock-conformance");
  app.footer(
      "GoogleTest's flags are taken too, e.g. --gtest_filter='*C06_*' or --gtest_list_tests.\n"
      "The suite takes locks named dlock-conformance/... and a few of one or two signs; give it a URL whose names are "
      "not in use.\n"
      "It says first about how long it will take. Some tests kill processes and wait until their sessions end: of the "
      "length that the URL sets (session_timeout, session_ttl, lease), else of 2 s, or longer if the service wants "
      "it.\n"
      "Exit status: 0 all tests that apply passed, 1 some failed, 2 wrong usage or a service that gives no lock, "
      "3 nothing failed but some tests could not be run.");
  std::string url;
  bool allow_untested = false;
  app.add_option("--url", url, "The service, e.g. redis://localhost")->required()->envname("DLOCK_URL");
  app.add_flag("--allow-untested", allow_untested, "Exit with 0 although some tests could not be run");
  app.allow_extras();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? conformance::exit_passed : conformance::exit_usage;
  }

  std::vector<std::string> rest = app.remaining();
  const bool only_lists = std::find(rest.begin(), rest.end(), "--gtest_list_tests") != rest.end();
  using enum dlock::LockKind;
  std::vector<dlock::LockKind> kinds{lock, read_write, semaphore, election};
  try {
    const dlock::Client client = dlock::connect(url);
    std::erase_if(kinds, [&](dlock::LockKind kind) { return !client.capabilities().has(kind); });
    if (!only_lists) {
      // GoogleTest owns its listeners, and starts none if it only lists tests.
      Pace pace = try_out(url, client.capabilities());
      // The first attempt may have found the machine busy.
      const Pace again = try_out(url, client.capabilities());
      pace.first_lock = std::min(pace.first_lock, again.first_lock);
      pace.next_lock = std::min(pace.next_lock, again.next_lock);
      ::testing::UnitTest::GetInstance()->listeners().Append(new Announcement(pace));
    }
  } catch (const dlock::Error& e) {
    std::cerr << "dlock-conformance: " << dlock::printable(e.what()) << '\n';
    return conformance::exit_usage;
  }
  conformance::add_subject({.name = subject_name(url),
                            .make = [url] { return std::make_unique<conformance::UrlFixture>(url); },
                            .kinds = kinds});

  rest.insert(rest.begin(), argv[0]);
  std::vector<char*> arguments;
  for (std::string& each : rest) arguments.push_back(each.data());
  arguments.push_back(nullptr);
  const int status = conformance::run(static_cast<int>(rest.size()), arguments.data());
  return status == conformance::exit_untested && allow_untested ? conformance::exit_passed : status;
}
