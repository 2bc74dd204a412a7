#include <dlock/spi/url.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <new>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/refusals.hpp"

namespace dlock {
namespace {

using namespace std::chrono_literals;

// The text with which it is refused; empty if it is accepted.
template <class F>
std::string why_refused(F&& f) {
  const Failure why = test::thrown_by(f);
  EXPECT_TRUE(!why.code || why.code == errc::invalid_argument);
  EXPECT_EQ(why.detail.find("URL") == std::string::npos, !why.code) << "names what is wrong: " << why.detail;
  return why.detail;
}
std::string refusal(std::string_view text) {
  return why_refused([&] { (void)Url::parse(text); });
}

// All parts of a URL, or of none, as text.
std::string parts_of(std::string_view text) {
  const Url url = Url::parse(text);
  std::ostringstream parts;
  parts << url.scheme() << " user=" << url.user().value_or("none") << " password=" << url.password().value_or("none");
  for (const auto& host : url.hosts()) parts << " host=" << host.name << '|' << host.port.value_or(0);
  parts << " path=" << url.path();
  for (const auto& [key, value] : url.parameters()) parts << ' ' << key << '=' << value;
  return parts.str();
}

TEST(Url, Parts_AreParsedAndDecoded) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"redis://alice:s3cret@db.example:6380/7?prefix=app&lease=30s",
       "redis user=alice password=s3cret host=db.example|6380 path=/7 prefix=app lease=30s"},
      {"memory://", "memory user=none password=none path="},
      {"memory://?lease=1s", "memory user=none password=none path= lease=1s"},
      {"memory://x?", "memory user=none password=none host=x|0 path="},
      {"file:///run/lock/my.app", "file user=none password=none path=/run/lock/my.app"},
      {"file:///run/user@host", "file user=none password=none path=/run/user@host"},
      {"redis://u:p@h/a@b", "redis user=u password=p host=h|0 path=/a@b"},
      {"REDIS://h:1", "redis user=none password=none host=h|1 path="},
      {"x://h:65535/a+b?k=c+d", "x user=none password=none host=h|65535 path=/a+b k=c+d"},
      {"x://h?k=a=b&l=", "x user=none password=none host=h|0 path= k=a=b l="},
      {"x://u%40ser:p%3Aa%2Fs%3F%23%40s@h%2dost/a%20b%3F%40?k%65y=v%26w%3D%25",
       "x user=u@ser password=p:a/s?#@s host=h-ost|0 path=/a b?@ key=v&w=%"},
      {"zookeeper://h1:2181,h2,[fe80::1%25eth0]:2183,[::1]/chroot",
       "zookeeper user=none password=none host=h1|2181 host=h2|0 host=fe80::1%eth0|2183 host=::1|0 path=/chroot"}};
  for (const auto& [text, parts] : rows) EXPECT_EQ(parts_of(text), parts) << text;
}

TEST(Url, MalformedUrl_IsRefusedNamingThePart) {
  using namespace std::string_literals;
  const std::vector<std::pair<std::string, std::vector<std::string>>> rows = {
      {"scheme", {"", "/run/lock", "redis", "1x://h", "re dis://h"}},
      {"\"redis:\" is not followed by \"//\"", {"redis:", "redis:h", "redis:/h"}},
      {"\"file:\" is not followed by \"//\"", {"FILE:/run/lock"}},
      {"':' is missing between \"redis\" and \"//\"", {"redis//h"}},
      {"no scheme", {"localhost:6379", "localhost:6379/1", "h1:2181,h2:2181", "127.0.0.1:6379", "localhost/1", "://h"}},
      {"no scheme before \"://\"", {"://h"}},
      {"empty host in the list", {"x://a,,b", "x://,a", "x://a,"}},
      {"host", {"x://:80", "x://%zz", "x://ho%0ast"}},
      {"brackets", {"x://::1", "x://fe80::1:80"}},
      {"IPv6", {"x://[::1", "x://[]", "x://[host]", "x://[fe80::1%25]", "x://[fe80::1%25+a]", "x://[fe80::1%25a+]"}},
      {"]", {"x://[::1]80"}},
      {"port", {"x://[::1]:"}},
      {"fragment", {"x://h#fragment"}},
      {"path", {"x://h/%", "x://h/%2", "x://h/%zz", "x://h/%+1"}},
      {"NUL", {"x://h/%00"}},
      {"user", {"x://%zz@h"}},
      {"password", {"x://u:%zz@h"}},
      {"\"k\"", {"x://h?k=%zz", "x://h?k"}},
      {"given twice", {"x://h?k=1&k=2", "x://h?key=1&k%65y=2"}},
      {"parameter", {"x://h?=1", "x://h?a=1&&b=2"}},
      {"control", {"x://h/a\nb", "x://h/a\0b"s, "x://h/\x7f"}},
      {"64 KiB", {"x://h/" + std::string(65537 - 6, 'a')}}};
  for (const auto& [part, texts] : rows) {
    for (const std::string& text : texts) {
      EXPECT_NE(refusal(text).find(part), std::string::npos) << text << " -> " << refusal(text);
    }
  }
  for (const char* port : {"0", "65536", "99999999999999999999", "abc", "", "-1", "+1", "1x", " 1", "0x10", "%31"}) {
    EXPECT_NE(refusal("x://host.example:" + std::string(port)).find("port"), std::string::npos) << port;
  }
  EXPECT_EQ(refusal("x://h/" + std::string(65536 - 6, 'a')), "");
}

TEST(Url, Secrets_AreRedactedOrLeftOut) {
  struct Row {
    const char* text;
    const char* redacted;
    const char* without_secrets;
  };
  for (const auto& [text, redacted, without_secrets] :
       {Row{"redis://u:secret@h:1/0?a=1", "redis://u:***@h:1/0?a=1", "redis://u@h:1/0?a=1"},
        Row{"redis://:secret@h", "redis://:***@h", "redis://h"}, Row{"redis://u@h", "redis://u@h", "redis://u@h"},
        Row{"redis://h?auth=digest:u:secret&a=1", "redis://h?auth=***&a=1", "redis://h?a=1"},
        Row{"redis://h?a=1&SSLPassword=secret", "redis://h?a=1&SSLPassword=***", "redis://h?a=1"},
        Row{"redis://h?p%61ss=secret", "redis://h?p%61ss=***", "redis://h"},
        Row{"redis://h?auth=x&a=1&password=y&b=2", "redis://h?auth=***&a=1&password=***&b=2", "redis://h?a=1&b=2"},
        Row{"redis://h?password_file=/p", "redis://h?password_file=/p", "redis://h?password_file=/p"},
        Row{"redis://u:sec@ret@h", "redis://u:***@h", "redis://u@h"}, Row{"REDIS://h", "redis://h", "redis://h"},
        Row{"postgresql://:secret@h/a@b", "postgresql://:***@h/a@b", "postgresql://h/a%40b"}}) {
    EXPECT_EQ(Url::parse(text).redacted(), redacted);
    EXPECT_EQ(Url::parse(text).without_secrets(), without_secrets);
  }
  const Url url = Url::parse("zookeeper://u:p@h1:1,[::1]:2/c%20d?a=1&auth=s&b=%26");
  EXPECT_EQ(parts_of(url.without_secrets()), "zookeeper user=u password=none host=h1|1 host=::1|2 path=/c d a=1 b=&");
  EXPECT_EQ(Url::parse("postgresql://h/a%40b").path(), "/a@b");
}

TEST(Url, Refusal_ShowsNoPassword) {
  // Each kind of error, and each way to write a password.
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

TEST(Url, Destructor_LeavesNoPasswordInMemory) {
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

TEST(Url, Number_IsTakenWithinItsBounds) {
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

TEST(Url, Choice_IsTakenByItsWord) {
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

TEST(Url, UnknownParameter_IsRefusedByName) {
  Url url = Url::parse("x://h?strategy=queue&b=2&leese=5s&auth=hunter2&Lease=5s&lease=250ms&wait=forever&bad=5");
  EXPECT_EQ(url.take("b"), "2");
  EXPECT_EQ(url.take("b"), std::nullopt);
  EXPECT_EQ(url.take("c"), std::nullopt);
  EXPECT_EQ(url.take("strategy"), "queue");
  EXPECT_EQ(url.take_duration("lease"), Duration(250ms));
  EXPECT_EQ(url.take_duration("lease"), std::nullopt) << "keys are taken case-sensitively";
  EXPECT_EQ(url.take_duration("wait"), forever);
  const std::string why = why_refused([&] { (void)url.take_duration("bad"); });
  EXPECT_NE(why.find("\"bad\""), std::string::npos) << why;
  EXPECT_NE(why.find("\"5\""), std::string::npos) << why;
  EXPECT_EQ(url.parameters().size(), 3U);
  EXPECT_EQ(why_refused([&] { url.require_no_parameters(); }),
            "URL: unknown parameter \"leese\" for scheme \"x\"; it takes b, bad, c, lease, strategy, wait");
  Url taken = Url::parse("x://h?a=1");
  EXPECT_EQ(taken.take("a"), "1");
  EXPECT_NO_THROW(taken.require_no_parameters());
}

}  // namespace
}  // namespace dlock
