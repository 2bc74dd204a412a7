#include "program_run.hpp"
#include "tests/support/etcd_server.hpp"

namespace dlock::conformance {
namespace {

using namespace std::chrono_literals;

TEST(BareUrl, Etcd_AsItIsConfiguredByDefault_Conforms) {
  const test::EtcdServer server({.heartbeat = 100ms, .election = 1s});
  expect_to_conform(server.url());
}

}  // namespace
}  // namespace dlock::conformance
