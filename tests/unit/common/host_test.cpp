#include "backends/common/host.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include <dlock/error.hpp>

namespace dlock::common {

namespace {

using testing::HasSubstr;

std::string hosts_in(const std::string& url, std::size_t most = 3) {
  return to_string(hosts_of(Url::parse(url), 7000, most));
}

std::string refusal_of(const std::string& url, std::size_t most = 3) {
  try {
    return "accepted: " + hosts_in(url, most);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), errc::invalid_argument);
    return e.what();
  }
}

TEST(Hosts, AreTakenInTheOrderOfTheUrl) {
  EXPECT_EQ(hosts_in("x://b:1,a,[::1]:2"), "b:1,a:7000,[::1]:2");
  EXPECT_EQ(hosts_in("x://"), "localhost:7000");
  EXPECT_EQ(hosts_in("x:///path"), "localhost:7000");
}

TEST(Hosts, AreRefusedByName) {
  EXPECT_THAT(refusal_of("x://a,b,c,d"), HasSubstr("host: more than 3 in the list"));
  EXPECT_THAT(refusal_of("x://a,b%2Fc"), HasSubstr("host: \"b/c\" is not a host name"));
  EXPECT_THAT(refusal_of("x://%2Frun"), HasSubstr("/run"));
}

TEST(Hosts, AreCheckedAsTheBackendWants) {
  const auto anything = [](const std::string&) {};
  EXPECT_EQ(to_string(hosts_of(Url::parse("x://%2Frun%2Fpg"), 7000, 1, anything)), "/run/pg:7000");
}

TEST(Hosts, KnowWhatIsThisMachine) {
  for (const char* name : {"localhost", "127.0.0.1", "127.1.2.3", "::1", "/run/postgresql"}) {
    EXPECT_TRUE((Host{.name = name, .port = 1}.is_this_machine())) << name;
  }
  for (const char* name : {"db1", "10.0.0.1", "127.example.net", "localhost.example.net", "::2"}) {
    EXPECT_FALSE((Host{.name = name, .port = 1}.is_this_machine())) << name;
  }
}

}  // namespace

}  // namespace dlock::common
