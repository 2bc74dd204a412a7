#include "program_run.hpp"
#include "tests/support/postgres_server.hpp"

namespace dlock::conformance {
namespace {

TEST(BareUrl, PostgreSql_Conforms) {
  const test::PostgresServer server;
  expect_to_conform(server.url());
}

}  // namespace
}  // namespace dlock::conformance
