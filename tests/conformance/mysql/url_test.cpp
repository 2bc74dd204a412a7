#include "program_run.hpp"
#include "tests/support/mysql_server.hpp"

namespace dlock::conformance {
namespace {

TEST(BareUrl, MySql_Conforms) {
  const test::MysqlServer server;
  expect_to_conform(server.url());
}

}  // namespace
}  // namespace dlock::conformance
