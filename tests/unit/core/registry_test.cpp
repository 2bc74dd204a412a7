#include "core/spi/registry.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include <dlock/client.hpp>
#include <dlock/error.hpp>
#include <dlock/spi/backend.hpp>

namespace dlock {
namespace {

std::unique_ptr<Backend> make_nothing(BackendHost&, const BackendConfig&) {
  throw Error(errc::unsupported, "made for a test");
}

std::string refusal(std::string scheme, BackendFactory factory) {
  try {
    register_backend(std::move(scheme), std::move(factory));
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), errc::invalid_argument);
    return e.detail();
  }
  return {};
}

TEST(Registry, ARegisteredSchemeIsListedAndFound) {
  register_backend("registry-test-a", make_nothing);
  const auto known = backends();
  EXPECT_NE(std::find(known.begin(), known.end(), "registry-test-a"), known.end());
  EXPECT_TRUE(std::is_sorted(known.begin(), known.end()));
  EXPECT_TRUE(detail::find_backend("registry-test-a"));
}

TEST(Registry, ASchemeIsTakenOnce) {
  register_backend("registry-test-b", make_nothing);
  EXPECT_NE(refusal("registry-test-b", make_nothing).find("\"registry-test-b\""), std::string::npos);
}

TEST(Registry, WhatIsNoSchemeIsRefused) {
  for (const char* scheme : {"", "1a", "Upper", "with space", "a_b", "a://"}) {
    EXPECT_FALSE(refusal(scheme, make_nothing).empty()) << scheme;
  }
}

TEST(Registry, AnEmptyFactoryIsRefused) {
  EXPECT_NE(refusal("registry-test-c", nullptr).find("registry-test-c"), std::string::npos);
  const auto known = backends();
  EXPECT_EQ(std::find(known.begin(), known.end(), "registry-test-c"), known.end());
}

TEST(Registry, AnUnknownSchemeIsRefusedNamingTheKnownOnes) {
  register_backend("registry-test-d", make_nothing);
  try {
    (void)detail::find_backend("nonesuch");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), errc::invalid_argument);
    EXPECT_NE(e.detail().find("\"nonesuch\""), std::string::npos);
    EXPECT_NE(e.detail().find("registry-test-d"), std::string::npos);
  }
}

}  // namespace
}  // namespace dlock
