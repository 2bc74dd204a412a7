#include <memory>
#include <string>
#include <vector>

#include <dlock/conformance/suite.hpp>

#include "postgres/postgres_fixture.hpp"
#include "untested.hpp"

namespace {

std::vector<dlock::LockKind> kinds_of(dlock::postgres::Strategy strategy) {
  using dlock::LockKind;
  switch (strategy) {
    case dlock::postgres::Strategy::table:
      return {LockKind::lock, LockKind::read_write, LockKind::semaphore, LockKind::election};
    case dlock::postgres::Strategy::optimistic:
      return {LockKind::lock, LockKind::election};
    case dlock::postgres::Strategy::advisory:
      return {LockKind::lock, LockKind::read_write, LockKind::election};
    case dlock::postgres::Strategy::for_update:
      break;
  }
  return {LockKind::lock};
}

}  // namespace

int main(int argc, char** argv) {
  using namespace dlock::conformance;
  using dlock::postgres::Strategy;
  const auto add = [](const std::string& name, PostgresSetup setup, Strategy strategy) {
    add_subject({.name = "postgres_" + name,
                 .make = [=] { return std::make_unique<PostgresFixture>(setup, strategy); },
                 .client_tests = false,
                 .kinds = kinds_of(strategy),
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
