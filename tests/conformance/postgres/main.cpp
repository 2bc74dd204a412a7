#include <memory>
#include <string>
#include <vector>

#include <dlock/conformance/suite.hpp>

#include "postgres/postgres_fixture.hpp"
#include "untested.hpp"

namespace {

std::vector<dlock::Space> spaces_of(dlock::postgres::Strategy strategy) {
  using dlock::Space;
  switch (strategy) {
    case dlock::postgres::Strategy::table:
      return {Space::lock, Space::read_write, Space::semaphore, Space::election};
    case dlock::postgres::Strategy::optimistic:
      return {Space::lock, Space::election};
    case dlock::postgres::Strategy::advisory:
      return {Space::lock, Space::read_write, Space::election};
    case dlock::postgres::Strategy::for_update:
      break;
  }
  return {Space::lock};
}

}  // namespace

int main(int argc, char** argv) {
  using namespace dlock::conformance;
  using dlock::postgres::Strategy;
  const auto add = [](const std::string& name, PostgresSetup setup, Strategy strategy) {
    add_subject({.name = "postgres_" + name,
                 .make = [=] { return std::make_unique<PostgresFixture>(setup, strategy); },
                 .client_tests = false,
                 .spaces = spaces_of(strategy),
                 .untested = untested_without_stepped_clock()});
  };
  add("table", PostgresSetup::direct, Strategy::table);
  add("optimistic", PostgresSetup::direct, Strategy::optimistic);
  add("for_update", PostgresSetup::direct, Strategy::for_update);
  add("advisory", PostgresSetup::direct, Strategy::advisory);
  add("pooled", PostgresSetup::pooled, Strategy::table);
  add("behind_pooler_optimistic", PostgresSetup::pooled, Strategy::optimistic);
  add("behind_pooler_for_update", PostgresSetup::session_pooled, Strategy::for_update);
  add("behind_pooler_advisory", PostgresSetup::session_pooled, Strategy::advisory);
  return run(argc, argv);
}
