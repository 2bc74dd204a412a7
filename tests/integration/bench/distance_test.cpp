// Proxies in front of hosts that are reached by name.
#include <gtest/gtest.h>

#include "bench/targets/distant_target.hpp"
#include "torture/rig/socket.hpp"

namespace dlock::bench {
namespace {

class PlainTarget final : public ServiceTarget {
 public:
  explicit PlainTarget(const std::string& url) : ServiceTarget(rig::UrlText(url), "plain", "") {}

  [[nodiscard]] bool has_floor() const override { return false; }
  [[nodiscard]] std::unique_ptr<Floor> floor_at(const rig::UrlText& /*url*/, const std::string& /*name*/) override {
    return nullptr;
  }
  [[nodiscard]] std::optional<Operations> operations() override { return std::nullopt; }
  void clean_up() override {}

 private:
  [[nodiscard]] rig::UrlText url_for(std::size_t /*locks*/) const override { return given(); }
};

TEST(DistantTargetTest, StandsInFrontOfEachHostAndKeepsTheRest) {
  const rig::Listener one;
  const rig::Listener other;
  PlainTarget near("redis://u:p@localhost:" + std::to_string(one.port()) +
                   ",127.0.0.1:" + std::to_string(other.port()) + "/path?a=b");
  const auto far = near.at_distance(std::chrono::milliseconds(1));
  const rig::UrlText url(far->url(1));
  const auto hosts = url.hosts({.name = "", .port = 1});
  ASSERT_EQ(hosts.size(), 2U);
  EXPECT_NE(hosts[0].port, hosts[1].port);
  EXPECT_NE(hosts[0].port, one.port());
  EXPECT_EQ(hosts[0].name, "127.0.0.1");
  EXPECT_EQ(url.original().user(), "u");
  EXPECT_EQ(url.original().path(), "/path");
  EXPECT_EQ(url.parameter("a"), "b");
}

TEST(DistantTargetTest, StandsOnlyWhereNobodyComparesTheNameOfTheHost) {
  const auto hosts = [](const std::string& url) { return rig::hosts_for_proxies(rig::UrlText(url)).size(); };
  EXPECT_EQ(hosts("redis://a"), 1U);
  EXPECT_EQ(hosts("rediss://a"), 0U);
  EXPECT_EQ(hosts("zookeeper://a,b:1,c"), 3U);
  EXPECT_EQ(hosts("etcd://a,b:1"), 2U);
  EXPECT_EQ(hosts("etcds://a"), 0U);
  EXPECT_EQ(hosts("postgresql://a,b/db"), 2U);
  EXPECT_EQ(hosts("postgres:///db?host=a&port=1"), 1U);
  EXPECT_EQ(hosts("postgresql:///db?host=/run/postgresql"), 0U);
  EXPECT_EQ(hosts("postgresql://a?sslmode=verify-full"), 0U);
  EXPECT_EQ(hosts("postgresql://a?sslrootcert=ca.pem"), 0U) << "which means the same";
  EXPECT_EQ(hosts("postgresql://a?sslrootcert=ca.pem&sslmode=verify-ca"), 1U);
  EXPECT_EQ(hosts("file:///tmp"), 0U);
}

TEST(DistantTargetTest, AHostThatIsNotThereIsSaid) {
  rig::Listener nobody;
  nobody.close();
  PlainTarget near("redis://localhost:" + std::to_string(nobody.port()));
  EXPECT_THROW((void)near.at_distance(std::chrono::milliseconds(1)), std::runtime_error);
}

}  // namespace
}  // namespace dlock::bench
