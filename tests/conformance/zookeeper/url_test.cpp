#include "program_run.hpp"
#include "tests/support/zookeeper_server.hpp"

namespace dlock::conformance {
namespace {

using namespace std::chrono_literals;

TEST(BareUrl, ZooKeeper_ThatGrantsLongerSessionsThanTheSuiteAsksFor_Conforms) {
  const test::ZooKeeperServer server({.tick = 500ms, .min_session = 3s});
  expect_to_conform(server.url());
}

}  // namespace
}  // namespace dlock::conformance
