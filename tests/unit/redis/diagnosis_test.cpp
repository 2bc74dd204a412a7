#include "backends/redis/administration/diagnosis.hpp"

#include <gtest/gtest.h>

#include <string>

namespace dlock::redis {

namespace {

using Severity = Finding::Severity;

Severity encryption_of(const std::string& host, bool tls) {
  Options options;
  options.host.name = host;
  if (tls) options.tls.emplace();
  return judge_encryption(options).severity;
}

TEST(RedisDiagnosis, ANetworkWantsEncryption) {
  EXPECT_EQ(encryption_of("db1", false), Severity::warning);
  EXPECT_EQ(encryption_of("10.0.0.1", false), Severity::warning);
  EXPECT_EQ(encryption_of("localhost.example.net", false), Severity::warning);
  EXPECT_EQ(encryption_of("127.example.net", false), Severity::warning);
  EXPECT_EQ(encryption_of("db1", true), Severity::ok);
}

TEST(RedisDiagnosis, ThisMachineNeedsNone) {
  for (const char* host : {"localhost", "127.0.0.1", "127.1.2.3", "::1"}) {
    EXPECT_EQ(encryption_of(host, false), Severity::ok) << host;
  }
}

}  // namespace

}  // namespace dlock::redis
