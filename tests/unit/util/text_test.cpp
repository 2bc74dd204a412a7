// Texts: names, labels and values, durations, numbers, escapes, and texts that are shown to people.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlock/info.hpp>
#include <dlock/spi/url.hpp>

#include "util/duration_text.hpp"
#include "util/names.hpp"
#include "util/number.hpp"
#include "util/percent.hpp"
#include "util/wipe.hpp"

namespace dlock::util {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using std::chrono::nanoseconds;

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

// --- Names -----------------------------------------------------------------------------------------------------------

std::string encode(std::uint32_t c) {
  const auto byte = [](std::uint32_t b) { return static_cast<char>(static_cast<unsigned char>(b)); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xc0 | (c >> 6U)), byte(0x80 | (c & 0x3fU))};
  if (c < 0x10000) return {byte(0xe0 | (c >> 12U)), byte(0x80 | ((c >> 6U) & 0x3fU)), byte(0x80 | (c & 0x3fU))};
  return {byte(0xf0 | (c >> 18U)), byte(0x80 | ((c >> 12U) & 0x3fU)), byte(0x80 | ((c >> 6U) & 0x3fU)),
          byte(0x80 | (c & 0x3fU))};
}

TEST(Names, AnyText_IsAccepted) {
  for (const std::string& name :
       words("a orders/42 / . .. ../../etc/passwd a/ -rf % %2F * ? ' \" ';-- $1 {x} \\ Ünïcödé 鍵 🔒 a\xcc\x88 "
             "\xef\xbb\xbf"
             "bom")) {
    EXPECT_EQ(problem_with_name(name), std::nullopt) << name;
  }
  for (std::uint32_t c = 0; c <= 0x10ffff; c += c < 0x3000 ? 1 : 251) {
    if (c >= 0xd800 && c <= 0xdfff) continue;
    const bool control = c < 0x20 || (c >= 0x7f && c <= 0x9f);
    EXPECT_EQ(problem_with_name(encode(c)).has_value(), control) << "U+" << std::hex << c;
  }
  for (const std::uint32_t c : {0xd7ffU, 0xe000U, 0xfffdU, 0xffffU, 0x10000U, 0x10ffffU}) {
    EXPECT_EQ(problem_with_name(encode(c)), std::nullopt) << "U+" << std::hex << c;
  }
}

TEST(Names, Length_IsBoundedInBytes) {
  struct Row {
    std::optional<std::string> (*problem)(std::string_view);
    std::size_t most;
    bool may_be_empty;
  };
  for (const auto& [problem, most, may_be_empty] :
       {Row{problem_with_name, 512, false}, {problem_with_label, 64, false}, {problem_with_value, 1024, true}}) {
    EXPECT_EQ(problem("").has_value(), !may_be_empty);
    EXPECT_EQ(problem(std::string(most, 'x')), std::nullopt);
    const auto too_long = problem(std::string(most + 1, 'x'));
    ASSERT_TRUE(too_long);
    EXPECT_NE(too_long->find(std::to_string(most + 1)), std::string::npos) << *too_long;
    EXPECT_LT(problem(std::string(1U << 20U, 'x')).value().size(), 200U) << "the message does not repeat it";
    EXPECT_TRUE(problem("a\nb") && problem("\xff"));
  }
  EXPECT_EQ(problem_with_value("a\nb"), "value \"a\\x0ab\" has a control character at byte 1");
  EXPECT_EQ(problem_with_value("\xff"), "value \"\\xff\" is not valid UTF-8 at byte 0");
}

TEST(Names, ControlCharactersAndMalformedUtf8_AreRefusedWithTheirPlace) {
  EXPECT_NE(problem_with_name("a\0b"s)->find("control character at byte 1"), std::string::npos);
  EXPECT_NE(problem_with_name("ü\xc2\x85")->find("byte 2"), std::string::npos) << "C1";
  // A continuation first; cut short; overlong; surrogates; beyond U+10FFFF; no continuation.
  const auto bad = words(
      "\x80 \xbf \xc3 \xe2\x82 \xf0\x9f\x94 \xc0\xaf \xc1\xbf \xe0\x80\xaf \xe0\x9f\xbf \xf0\x80\x80\xaf "
      "\xf0\x8f\xbf\xbf \xed\xa0\x80 \xed\xbf\xbf \xf4\x90\x80\x80 \xf5\x80\x80\x80 \xf8\x88\x80\x80\x80 \xfe \xff "
      "\xc3( \xe2\x28\xa1 \xe2\x82\x28 \xf0\x9f\x94\x28");
  ASSERT_EQ(bad.size(), 22U);
  for (const std::string& text : bad) {
    const auto problem = problem_with_name("ok" + text + "ok");
    ASSERT_TRUE(problem) << quoted(text);
    EXPECT_NE(problem->find("not valid UTF-8 at byte 2"), std::string::npos) << *problem;
  }
}

TEST(Names, Scheme_IsOneOfRfc3986InLowerCase) {
  for (const char* good : {"file", "a", "a1", "zookeeper+tls", "x-y", "x.y"}) EXPECT_TRUE(is_scheme(good)) << good;
  for (const char* bad : {"", "1a", "+a", "File", "a_b", "a/b", "a:b", "ä", " a", "a "}) {
    EXPECT_FALSE(is_scheme(bad)) << bad;
  }
  EXPECT_FALSE(is_scheme(std::string_view("a\0", 2)));
}

// --- Texts for people ------------------------------------------------------------------------------------------------

TEST(Printable, ControlsAndChangesOfDirection_AreEscaped) {
  const std::pair<std::string_view, std::string_view> rows[] = {
      {"", ""},
      {"plain \\ text", "plain \\ text"},
      {"\u00e4\u6f22\U0001f512", "\u00e4\u6f22\U0001f512"},
      {"a\u200db", "a\u200db"},
      {"\033]0;title\a\033[2J", "\\x1b]0;title\\x07\\x1b[2J"},
      {"one\ntwo\r\t\b\x7f", "one\\x0atwo\\x0d\\x09\\x08\\x7f"},
      {std::string_view("\0", 1), "\\x00"},
      {"\u009b2J", "\\xc2\\x9b2J"},  // CSI in one character
      {"\x9b", "\\x9b"},             // the same in one byte, which is not UTF-8
      {"\xe2\x82", "\\xe2\\x82"},    // cut short
      {"a\u202eb\u2066c", "a\\xe2\\x80\\xaeb\\xe2\\x81\\xa6c"},
      {"a\u2028b", "a\\xe2\\x80\\xa8b"},
      {"a\u200fb", "a\\xe2\\x80\\x8fb"}};
  for (const auto& [text, shown] : rows) {
    EXPECT_EQ(printable(text), shown);
    EXPECT_EQ(quoted(text), '"' + std::string(shown) + '"');
  }
  for (const char* piece : {"x", "\1", "🔒"}) {
    std::string text;
    while (text.size() < 100000) text += piece;
    EXPECT_LT(util::quoted(text).size(), 100U);
    EXPECT_EQ(problem_with_name(util::quoted(text)), std::nullopt) << "not cut inside a character";
  }
}

// --- Numbers, escapes ------------------------------------------------------------------------------------------------

TEST(ParseNumber, AllOfTheText_FitsTheType) {
  EXPECT_EQ(parse_number<std::uint32_t>("17"), 17U);
  EXPECT_EQ(parse_number<std::int64_t>("-17"), -17);
  EXPECT_EQ(parse_number<std::uint32_t>("fF", 16), 255U);
  EXPECT_EQ(parse_number<std::uint16_t>("65535"), 65535U);
  EXPECT_EQ(parse_number<std::uint16_t>("65536"), std::nullopt);
  EXPECT_EQ(parse_number<std::uint32_t>("-1"), std::nullopt);
  for (const char* text : {"", " 1", "1 ", "+1", "1.0", "x"}) {
    EXPECT_EQ(parse_number<std::int64_t>(text), std::nullopt) << text;
  }
}

TEST(PercentDecode, Escapes_BecomeBytesOrAreRefused) {
  const std::pair<const char*, std::optional<std::string>> rows[] = {
      {"", ""},        {"plain", "plain"}, {"a%20b", "a b"}, {"%2F%2f", "//"}, {"%25%32%35", "%25"},
      {"%ff", "\xff"}, {"%00", "\0"s}};  // once only
  for (const auto& [text, bytes] : rows) EXPECT_EQ(percent_decode(text), bytes);
  for (const char* text : {"%", "%2", "a%", "a%2", "%g0", "%0g", "%%20", "% 1", "%+1", "%-1", "%0x", "%2%30"}) {
    EXPECT_EQ(percent_decode(text), std::nullopt) << text;
  }
}

TEST(Wipe, AllMemoryOfAText_IsOverwritten) {
  for (const std::size_t length : {7U, 15U, 16U, 1000U}) {  // short ones are stored in the string itself
    std::string text(length, 's');
    text.resize(length / 2);
    const char* const memory = text.data();
    wipe(text);
    EXPECT_TRUE(text.empty());
    ASSERT_EQ(text.data(), memory) << "still the text's own";
    EXPECT_EQ(std::string(memory, length), std::string(length, '\0'));
  }
}

// --- Durations -------------------------------------------------------------------------------------------------------

TEST(ParseDuration, NumberWithAUnit_IsAccepted) {
  const std::pair<const char*, nanoseconds> good[] = {{"0", 0ns},
                                                      {"250ms", 250ms},
                                                      {"1.5s", 1500ms},
                                                      {"2m", 2min},
                                                      {"1d", 24h},
                                                      {"7ns", 7ns},
                                                      {"3us", 3us},
                                                      {"007s", 7s},
                                                      {"9223372036854775807ns", nanoseconds::max()},
                                                      {"0.5ns", 1ns},
                                                      {"1.000000001s", 1s + 1ns},
                                                      {"forever", forever.value()},
                                                      {"inf", forever.value()}};
  for (const auto& [text, value] : good) EXPECT_EQ(parse_duration(text), Duration(value)) << text;
}

TEST(ParseDuration, OtherText_IsRefused) {
  for (const std::string& text :
       words("5 1.5 5sec 5S s .5s . .. 1..5s 1.2.3s -1s +1s -0 nan NaN infinity -inf 1e3s 1e400 0x10s 1,5s 5s5s "
             "9223372036854775808ns 9223372037s 106752d 99999999999999999999999d 1e400s 99999999999999999999999.5d "
             "5\xc2\xb5s")) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << '"' << text << '"';
  }
  for (const char* text : {"", " ", "5 sec", "5 s", " 5s", "5s "})
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  EXPECT_EQ(parse_duration(std::string_view("5s\0", 3)), std::nullopt);
  EXPECT_EQ(parse_duration(std::string(100000, '9') + "s"), std::nullopt);
  EXPECT_EQ(parse_duration(std::string(100000, '9') + ".5s"), std::nullopt);
}

TEST(DurationText, LargestExactUnit_IsReadBack) {
  const std::pair<nanoseconds, const char*> rows[] = {{0ns, "0"},
                                                      {30s, "30s"},
                                                      {1500ms, "1500ms"},
                                                      {2min, "2m"},
                                                      {24h, "1d"},
                                                      {1ns, "1ns"},
                                                      {nanoseconds::max(), "forever"},
                                                      {nanoseconds::max() - 1ns, "9223372036854775806ns"}};
  for (const auto& [duration, text] : rows) {
    EXPECT_EQ(to_text(duration), text);
    EXPECT_EQ(parse_duration(text), Duration(duration)) << text;
  }
  EXPECT_EQ(to_text(-5s), "-5s");
  EXPECT_EQ(to_text(nanoseconds::min()), "-9223372036854775808ns");
}

}  // namespace
}  // namespace dlock::util
