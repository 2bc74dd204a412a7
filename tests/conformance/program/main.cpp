// dlock-conformance: runs the conformance suite against a live service.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <dlock/conformance/suite.hpp>
#include <dlock/dlock.hpp>

namespace {

// The scheme, as part of the tests' names.
std::string subject_name(const std::string& url) {
  std::string name = url.substr(0, url.find(':'));
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name.empty() ? "url" : name;
}

// The kinds of locks that the backend has.
std::vector<dlock::Space> spaces_of(const dlock::Client& client) {
  using dlock::Space;
  std::vector<Space> spaces{Space::lock, Space::read_write, Space::semaphore, Space::election};
  std::erase_if(spaces, [&](Space space) { return !client.capabilities().has(space); });
  return spaces;
}

// Takes a lock and gives it back, so that what is wrong with the service is said once, not by every test.
void try_out(const dlock::Client& client) {
  try {
    if (auto lease = client.lock("dlock-conformance/try-out").try_acquire()) (void)lease->release();
  } catch (const dlock::Error& e) {
    throw dlock::Error(dlock::Failure{e.code(), client.url() + " gives no lock: " + e.detail()});
  }
}

}  // namespace

int main(int argc, char** argv) {
  namespace conformance = dlock::conformance;
  if (const auto status = conformance::run_as_helper(argc, argv)) return *status;

  CLI::App app("Tests every line of dlock's contract against a live lock service.", "dlock-conformance");
  app.footer(
      "GoogleTest's flags are taken too, e.g. --gtest_filter='*C06_*' or --gtest_list_tests.\n"
      "The suite takes locks named dlock-conformance/... and a few of one or two signs; give it a URL whose names are "
      "not in use.\n"
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
  std::vector<dlock::Space> spaces;
  try {
    const dlock::Client client = dlock::connect(url);
    spaces = spaces_of(client);
    if (!only_lists) try_out(client);
  } catch (const dlock::Error& e) {
    std::cerr << "dlock-conformance: " << dlock::printable(e.what()) << '\n';
    return conformance::exit_usage;
  }
  conformance::add_subject({.name = subject_name(url),
                            .make = [url] { return std::make_unique<conformance::UrlFixture>(url); },
                            .spaces = spaces});

  rest.insert(rest.begin(), argv[0]);
  std::vector<char*> arguments;
  for (std::string& each : rest) arguments.push_back(each.data());
  arguments.push_back(nullptr);
  const int status = conformance::run(static_cast<int>(rest.size()), arguments.data());
  return status == conformance::exit_untested && allow_untested ? conformance::exit_passed : status;
}
