#include <dlock/spi/url.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <dlock/error.hpp>

namespace dlock {
namespace {

using namespace std::chrono_literals;

// The text with which the URL is refused; empty if it is accepted.
std::string refusal(std::string_view text) {
  try {
    (void)Url::parse(text);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), errc::invalid_argument);
    EXPECT_NE(e.detail().find("URL"), std::string::npos) << "names what is wrong: " << e.detail();
    return e.what();
  }
  return {};
}

void expect_refused(std::string_view text, std::string_view part) {
  const std::string why = refusal(text);
  EXPECT_FALSE(why.empty()) << "accepted: " << text;
  EXPECT_NE(why.find(part), std::string::npos) << text << " -> " << why;
}

// What an error says that was thrown because of a bad argument.
template <class F>
std::string why_refused(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), errc::invalid_argument);
    return e.detail();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(Url, IsTakenApart) {
  const Url url = Url::parse("redis://alice:s3cret@db.example:6380/7?prefix=app&lease=30s");
  EXPECT_EQ(url.scheme(), "redis");
  EXPECT_EQ(url.user(), "alice");
  EXPECT_EQ(url.password(), "s3cret");
  ASSERT_EQ(url.hosts().size(), 1U);
  EXPECT_EQ(url.hosts()[0].name, "db.example");
  EXPECT_EQ(url.hosts()[0].port, 6380);
  EXPECT_EQ(url.path(), "/7");
  ASSERT_EQ(url.parameters().size(), 2U);
  EXPECT_EQ(url.parameters()[0], (std::pair<std::string, std::string>("prefix", "app")));
  EXPECT_EQ(url.parameters()[1], (std::pair<std::string, std::string>("lease", "30s")));
}

TEST(Url, EveryPartButTheSchemeMayBeMissing) {
  const Url url = Url::parse("memory://");
  EXPECT_EQ(url.scheme(), "memory");
  EXPECT_EQ(url.user(), std::nullopt);
  EXPECT_EQ(url.password(), std::nullopt);
  EXPECT_TRUE(url.hosts().empty());
  EXPECT_EQ(url.path(), "");
  EXPECT_TRUE(url.parameters().empty());
  EXPECT_EQ(Url::parse("file:///run/lock/my.app").path(), "/run/lock/my.app");
  EXPECT_EQ(Url::parse("memory://?lease=1s").parameters().size(), 1U);
  EXPECT_EQ(Url::parse("memory://x?").parameters().size(), 0U);
}

TEST(Url, TheSchemeIsReadInAnyCase) {
  EXPECT_EQ(Url::parse("REDIS://h").scheme(), "redis");
}

TEST(Url, PercentEscapesAreDecoded) {
  const Url url = Url::parse("x://u%40ser:p%3Aa%2Fs%3F%23%40s@h%2dost/a%20b%3F%40?k%65y=v%26w%3D%25");
  EXPECT_EQ(url.user(), "u@ser");
  EXPECT_EQ(url.password(), "p:a/s?#@s");
  EXPECT_EQ(url.hosts()[0].name, "h-ost");
  EXPECT_EQ(url.path(), "/a b?@");
  EXPECT_EQ(url.parameters()[0], (std::pair<std::string, std::string>("key", "v&w=%")));
}

TEST(Url, APlusIsAPlus) {
  EXPECT_EQ(Url::parse("x://h/a+b?k=c+d").path(), "/a+b");
  EXPECT_EQ(Url::parse("x://h/a+b?k=c+d").parameters()[0].second, "c+d");
}

TEST(Url, AValueMayContainEqualsSignsAndBeEmpty) {
  EXPECT_EQ(Url::parse("x://h?k=a=b").parameters()[0].second, "a=b");
  EXPECT_EQ(Url::parse("x://h?k=").parameters()[0].second, "");
}

TEST(Url, HostsFormAList) {
  const Url url = Url::parse("zookeeper://h1:2181,h2,[fe80::1%25eth0]:2183,[::1]/chroot");
  ASSERT_EQ(url.hosts().size(), 4U);
  EXPECT_EQ(url.hosts()[0].name, "h1");
  EXPECT_EQ(url.hosts()[0].port, 2181);
  EXPECT_EQ(url.hosts()[1].name, "h2");
  EXPECT_EQ(url.hosts()[1].port, std::nullopt);
  EXPECT_EQ(url.hosts()[2].name, "fe80::1%eth0");
  EXPECT_EQ(url.hosts()[2].port, 2183);
  EXPECT_EQ(url.hosts()[3].name, "::1");
  EXPECT_EQ(url.hosts()[3].port, std::nullopt);
  EXPECT_EQ(url.path(), "/chroot");
}

TEST(Url, PortsAreFrom1To65535) {
  EXPECT_EQ(Url::parse("x://h:1").hosts()[0].port, 1);
  EXPECT_EQ(Url::parse("x://h:65535").hosts()[0].port, 65535);
  for (const char* port : {"0", "65536", "99999999999999999999", "abc", "", "-1", "+1", "1x", " 1", "0x10", "%31"}) {
    expect_refused("x://host.example:" + std::string(port), "port");
  }
}

TEST(Url, MalformedOnesAreRefusedNamingThePart) {
  expect_refused("", "scheme");
  expect_refused("/run/lock", "scheme");
  expect_refused("redis", "scheme");
  expect_refused("redis:", "\"redis:\" is not followed by \"//\"");
  expect_refused("redis:h", "\"redis:\" is not followed by \"//\"");
  expect_refused("redis:/h", "\"redis:\" is not followed by \"//\"");
  expect_refused("FILE:/run/lock", "\"file:\" is not followed by \"//\"");
  expect_refused("redis//h", "':' is missing between \"redis\" and \"//\"");
  expect_refused("localhost:6379", "no scheme");
  expect_refused("localhost:6379/1", "no scheme");
  expect_refused("h1:2181,h2:2181", "no scheme");
  expect_refused("127.0.0.1:6379", "no scheme");
  expect_refused("localhost/1", "no scheme");
  expect_refused("://h", "no scheme before \"://\"");
  expect_refused("1x://h", "scheme");
  expect_refused("re dis://h", "scheme");
  expect_refused("x://a,,b", "empty host in the list");
  expect_refused("x://,a", "empty host in the list");
  expect_refused("x://a,", "empty host in the list");
  expect_refused("x://:80", "host");
  expect_refused("x://::1", "brackets");
  expect_refused("x://fe80::1:80", "brackets");
  expect_refused("x://[::1", "IPv6");
  expect_refused("x://[]", "IPv6");
  expect_refused("x://[host]", "IPv6");
  expect_refused("x://[fe80::1%25]", "IPv6");
  expect_refused("x://[fe80::1%25+a]", "IPv6");
  expect_refused("x://[fe80::1%25a+]", "IPv6");
  expect_refused("x://[::1]80", "]");
  expect_refused("x://[::1]:", "port");
  expect_refused("x://h#fragment", "fragment");
  expect_refused("x://h/%", "path");
  expect_refused("x://h/%2", "path");
  expect_refused("x://h/%zz", "path");
  expect_refused("x://h/%+1", "path");
  expect_refused("x://h/%00", "NUL");
  expect_refused("x://%zz", "host");
  expect_refused("x://%zz@h", "user");
  expect_refused("x://u:%zz@h", "password");
  expect_refused("x://h?k=%zz", "\"k\"");
  expect_refused("x://h?k=1&k=2", "given twice");
  expect_refused("x://h?k", "k");
  expect_refused("x://h?=1", "parameter");
  expect_refused("x://h?a=1&&b=2", "parameter");
  expect_refused("x://h/a\nb", "control");
  expect_refused(std::string_view("x://h/a\0b", 9), "control");
  expect_refused("x://h/\x7f", "control");
  expect_refused("x://ho%0ast", "host");
  expect_refused("x://h/" + std::string(70000, 'a'), "64 KiB");
}

TEST(Url, KeysThatDifferInEncodingOnlyAreTheSameKey) {
  expect_refused("x://h?key=1&k%65y=2", "given twice");
}

TEST(Url, LengthIsBoundedAt64KiB) {
  const std::string start = "x://h/";
  EXPECT_EQ(refusal(start + std::string(65536 - start.size(), 'a')), "");
  EXPECT_NE(refusal(start + std::string(65537 - start.size(), 'a')), "");
}

TEST(Url, RedactedHidesTheSecrets) {
  EXPECT_EQ(Url::parse("redis://u:secret@h:1/0?a=1").redacted(), "redis://u:***@h:1/0?a=1");
  EXPECT_EQ(Url::parse("redis://:secret@h").redacted(), "redis://:***@h");
  EXPECT_EQ(Url::parse("redis://u@h").redacted(), "redis://u@h");
  EXPECT_EQ(Url::parse("redis://h?auth=digest:u:secret&a=1").redacted(), "redis://h?auth=***&a=1");
  EXPECT_EQ(Url::parse("redis://h?a=1&SSLPassword=secret").redacted(), "redis://h?a=1&SSLPassword=***");
  EXPECT_EQ(Url::parse("redis://h?p%61ss=secret").redacted(), "redis://h?p%61ss=***");
  EXPECT_EQ(Url::parse("redis://h?password_file=/p").redacted(), "redis://h?password_file=/p");
  EXPECT_EQ(Url::parse("redis://u:sec@ret@h").redacted(), "redis://u:***@h");
  EXPECT_EQ(Url::parse("REDIS://h").redacted(), "redis://h");
}

TEST(Url, WithoutSecretsLeavesThemOut) {
  EXPECT_EQ(Url::parse("redis://u:secret@h:1/0?a=1").without_secrets(), "redis://u@h:1/0?a=1");
  EXPECT_EQ(Url::parse("redis://:secret@h").without_secrets(), "redis://h");
  EXPECT_EQ(Url::parse("redis://h?auth=x&a=1&password=y&b=2").without_secrets(), "redis://h?a=1&b=2");
  EXPECT_EQ(Url::parse("redis://h?auth=x").without_secrets(), "redis://h");
}

TEST(Url, WithoutSecretsIsAUrlOfTheSameService) {
  const Url url = Url::parse("zookeeper://u:p@h1:1,[::1]:2/c%20d?a=1&auth=s&b=%26");
  const Url again = Url::parse(url.without_secrets());
  EXPECT_EQ(again.path(), url.path());
  EXPECT_EQ(again.user(), url.user());
  EXPECT_EQ(again.password(), std::nullopt);
  ASSERT_EQ(again.hosts().size(), 2U);
  EXPECT_EQ(again.hosts()[1].name, "::1");
  EXPECT_EQ(again.parameters().size(), 2U);
}

TEST(Url, WithoutSecretsCanBeReadAgainThoughThePathHasAnAtSign) {
  const Url url = Url::parse("postgresql://:secret@h/a@b");
  EXPECT_EQ(url.without_secrets(), "postgresql://h/a%40b");
  EXPECT_EQ(Url::parse(url.without_secrets()).path(), url.path());
}

TEST(Url, NoRefusalShowsAPassword) {
  // Whatever is wrong, and however the password was written.
  for (const char* text :
       {"redis://user:hunter2@h:99999", "redis://user:hunter2@", "redis://user:hunter2@h,,h",
        "redis://user:hunter2@h?x", "redis://user:hunter2%@h", "redis://user:hunter2@[", "redis://user:hunter2@h#f",
        "redis://user:hunter2@h/%", "redis://user:hunter2@h?k=1&k=2", "redis://user:hunter2@::1",
        // the '@' or an escape was forgotten
        "redis://user:hunter2", "redis://:hunter2", "redis://user:hunter2/x@h", "redis://user:1/hunter2@h",
        "redis://user:x/hunter2@h", "redis://user:x?hunter2@h", "redis://user:1?hunter2@h", "user:hunter2@h",
        "user:hunter2@h://x", "redis:user:hunter2@h", "redis://user:x#hunter2@h", "redis://h?auth=hunter2%",
        "redis://h?password=hunter2&password=hunter2", "redis://h?password=hunter2%zz"}) {
    const std::string why = refusal(text);
    EXPECT_EQ(why.find("hunter2"), std::string::npos) << text << " -> " << why;
    if (why.empty()) {
      const Url url = Url::parse(text);
      EXPECT_EQ(url.redacted().find("hunter2"), std::string::npos) << text << " -> " << url.redacted();
      EXPECT_EQ(url.without_secrets().find("hunter2"), std::string::npos) << text << " -> " << url.without_secrets();
    }
  }
}

TEST(Url, AnAtSignInAPathWithoutAHostIsAnAtSign) {
  EXPECT_EQ(Url::parse("file:///run/user@host").path(), "/run/user@host");
  EXPECT_EQ(Url::parse("redis://u:p@h/a@b").path(), "/a@b");
}

TEST(Url, TakingAParameterRemovesIt) {
  Url url = Url::parse("x://h?a=1&b=2");
  EXPECT_EQ(url.take("b"), "2");
  EXPECT_EQ(url.take("b"), std::nullopt);
  EXPECT_EQ(url.take("c"), std::nullopt);
  EXPECT_EQ(url.parameters().size(), 1U);
  EXPECT_EQ(url.take("a"), "1");
  EXPECT_NO_THROW(url.require_no_parameters());
}

TEST(Url, LeavesNoPasswordInItsMemory) {
  // The short password is in the object itself, also after it was moved from.
  for (const bool moved : {false, true}) {
    alignas(Url) std::array<unsigned char, sizeof(Url)> memory{};
    Url* const url = new (memory.data()) Url(Url::parse("redis://u:hunter2@h"));
    const auto holds_password = [&] {
      return std::string_view(reinterpret_cast<const char*>(memory.data()), memory.size()).find("unter2") !=
             std::string_view::npos;
    };
    ASSERT_TRUE(holds_password());
    if (moved) {
      EXPECT_EQ(Url(std::move(*url)).password(), "hunter2");
    }
    url->~Url();
    EXPECT_FALSE(holds_password());
  }
}

TEST(Url, WhatNobodyTookIsRefusedByName) {
  Url url = Url::parse("x://h?strategy=queue&leese=5s&auth=hunter2");
  (void)url.take("strategy");
  (void)url.take_duration("lease");
  EXPECT_EQ(why_refused([&] { url.require_no_parameters(); }),
            "URL: unknown parameter \"leese\" for scheme \"x\"; it takes lease, strategy");
}

TEST(Url, NumbersAreTakenWithinTheirBounds) {
  Url url = Url::parse("x://h?low=1&high=16&zero=0&over=17&negative=-1&text=4x&huge=99999999999999999999&empty=");
  EXPECT_EQ(url.take_number("low", 1, 16), 1U);
  EXPECT_EQ(url.take_number("high", 1, 16), 16U);
  EXPECT_EQ(url.take_number("none", 1, 16), std::nullopt);
  for (const char* key : {"zero", "over", "negative", "text", "huge", "empty"}) {
    const std::string why = why_refused([&] { (void)url.take_number(key, 1, 16); });
    EXPECT_NE(why.find("\"" + std::string(key) + "\""), std::string::npos) << why;
    EXPECT_NE(why.find("is not a number from 1 to 16"), std::string::npos) << why;
  }
}

TEST(Url, ChoicesAreTakenByTheirWords) {
  Url url = Url::parse("x://h?a=one&b=three&c=four&d=");
  const auto take = [&](std::string_view key) {
    return url.take_choice<int>(key, {{"one", 1}, {"two", 2}, {"three", 3}}, 7);
  };
  EXPECT_EQ(take("a"), 1);
  EXPECT_EQ(take("b"), 3);
  EXPECT_EQ(take("none"), 7);
  EXPECT_EQ(why_refused([&] { (void)take("c"); }), "URL: parameter \"c\" must be one, two or three, not \"four\"");
  EXPECT_EQ(why_refused([&] { (void)take("d"); }), "URL: parameter \"d\" must be one, two or three, not \"\"");
}

TEST(Url, KeysAreTakenCaseSensitively) {
  Url url = Url::parse("x://h?Lease=5s");
  EXPECT_EQ(url.take("lease"), std::nullopt);
}

TEST(Url, DurationsAreTakenWithTheirUnits) {
  Url url = Url::parse("x://h?lease=250ms&wait=forever&bad=5");
  EXPECT_EQ(url.take_duration("lease"), Duration(250ms));
  EXPECT_EQ(url.take_duration("wait"), forever);
  EXPECT_EQ(url.take_duration("none"), std::nullopt);
  try {
    (void)url.take_duration("bad");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), errc::invalid_argument);
    EXPECT_NE(e.detail().find("\"bad\""), std::string::npos);
    EXPECT_NE(e.detail().find("\"5\""), std::string::npos);
  }
}

TEST(Url, ParsingTheSameTextTwiceGivesTheSame) {
  for (const char* text : {"redis://u:p@h:1,[::1]:2/p?a=1&b=2", "file:///x", "memory://"}) {
    EXPECT_EQ(Url::parse(text).redacted(), Url::parse(text).redacted());
  }
}

}  // namespace
}  // namespace dlock
