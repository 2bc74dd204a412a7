// The session of a client: what keeps it, what does not count, and what it goes on from.
#include "backends/etcd/connection/session.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "backend_fixture.hpp"

namespace dlock::etcd {
namespace {

using namespace std::chrono_literals;

class EtcdSessionTest : public EtcdFixture {};

// A member that is not one of etcd's at all does not cost what the others would keep.
TEST_F(EtcdSessionTest, IsKeptThoughOneMemberRefusesForGood) {
  const auto held = contend(*backend);
  int refusals = 0;
  etcd.refuses_at = [&](const common::Host&) {
    return ++refusals == 1 ? Failure{errc::protocol, "b:2379: the server speaks HTTP/1.1, not HTTP/2"} : Failure{};
  };
  etcd.break_connections();
  engine.advance(20s);
  EXPECT_TRUE(host.losses.empty());
  EXPECT_GE(refusals, 2);
}

}  // namespace
}  // namespace dlock::etcd
