#include "bench/targets/postgres/libpq_url.hpp"

#include <gtest/gtest.h>

namespace dlock::bench {
namespace {

TEST(BenchLibpqUrl, LeavesOutWhatOnlyDlockKnows) {
  rig::UrlText url(libpq_url(rig::UrlText(
      "postgresql://u:p@h1,h2:5433/db?strategy=table&schema=s&lease=10s&max_connections=5&sslmode=require")));
  EXPECT_EQ(url.parameter("sslmode"), "require");
  url.remove("sslmode");
  url.remove("connect_timeout");
  url.remove("gssencmode");
  EXPECT_EQ(url.text(), "postgresql://u:p@h1,h2:5433/db");
}

TEST(BenchLibpqUrl, TheLimitOfConnectingIsInSeconds) {
  EXPECT_EQ(
      rig::UrlText(libpq_url(rig::UrlText("postgresql://h/db?connect_timeout=1500ms"))).parameter("connect_timeout"),
      "10");
}

TEST(BenchLibpqUrl, WithoutAHostItIsThisOne) {
  EXPECT_EQ(rig::UrlText(libpq_url(rig::UrlText("postgresql:///db"))).parameter("host"), "localhost");
  EXPECT_EQ(rig::UrlText(libpq_url(rig::UrlText("postgresql:///db?host=/run/postgresql"))).parameter("host"),
            "/run/postgresql");
  EXPECT_EQ(rig::UrlText(libpq_url(rig::UrlText("postgresql://h/db"))).parameter("host"), std::nullopt);
}

TEST(BenchLibpqUrl, LooksForTicketsOnlyWhereItIsTold) {
  EXPECT_EQ(rig::UrlText(libpq_url(rig::UrlText("postgresql://h/db"))).parameter("gssencmode"), "disable");
  EXPECT_EQ(rig::UrlText(libpq_url(rig::UrlText("postgresql://h/db?gssencmode=prefer"))).parameter("gssencmode"),
            "prefer");
}

}  // namespace
}  // namespace dlock::bench
