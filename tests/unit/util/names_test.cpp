#include "util/names.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include <dlock/info.hpp>

namespace dlock::util {
namespace {

using namespace std::string_literals;

std::string encode(std::uint32_t c) {
  const auto byte = [](std::uint32_t b) { return static_cast<char>(static_cast<unsigned char>(b)); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xc0 | (c >> 6U)), byte(0x80 | (c & 0x3fU))};
  if (c < 0x10000) return {byte(0xe0 | (c >> 12U)), byte(0x80 | ((c >> 6U) & 0x3fU)), byte(0x80 | (c & 0x3fU))};
  return {byte(0xf0 | (c >> 18U)), byte(0x80 | ((c >> 12U) & 0x3fU)), byte(0x80 | ((c >> 6U) & 0x3fU)),
          byte(0x80 | (c & 0x3fU))};
}

TEST(Names, OrdinaryNamesAreData) {
  for (const char* name : {"a",
                           "orders/42",
                           "/",
                           ".",
                           "..",
                           "../../etc/passwd",
                           "a/",
                           "-rf",
                           " ",
                           "a b",
                           "%",
                           "%2F",
                           "*",
                           "?",
                           "'",
                           "\"",
                           "';--",
                           "$1",
                           "{x}",
                           "\\",
                           "Ünïcödé",
                           "鍵",
                           "🔒",
                           "a\xcc\x88",
                           "\xef\xbb\xbf"
                           "bom"}) {
    EXPECT_EQ(problem_with_name(name), std::nullopt) << name;
  }
}

TEST(Names, LengthIsBoundedInBytes) {
  EXPECT_NE(problem_with_name(""), std::nullopt);
  EXPECT_EQ(problem_with_name(std::string(512, 'x')), std::nullopt);
  const auto problem = problem_with_name(std::string(513, 'x'));
  ASSERT_TRUE(problem);
  EXPECT_NE(problem->find("513"), std::string::npos);
  std::string wide;
  while (wide.size() < 512) wide += "\xc3\xbc";
  EXPECT_EQ(problem_with_name(wide), std::nullopt);
  EXPECT_NE(problem_with_name(wide + "\xc3\xbc"), std::nullopt);
  EXPECT_NE(problem_with_name(std::string(1U << 20U, 'x')), std::nullopt);
  EXPECT_LT(problem_with_name(std::string(1U << 20U, 'x'))->size(), 200U) << "the message does not repeat it";
}

TEST(Names, EveryScalarValueButControlsIsAccepted) {
  for (std::uint32_t c = 0; c <= 0x10ffff; c += c < 0x3000 ? 1 : 251) {
    if (c >= 0xd800 && c <= 0xdfff) continue;
    const bool control = c < 0x20 || (c >= 0x7f && c <= 0x9f);
    EXPECT_EQ(problem_with_name(encode(c)).has_value(), control) << "U+" << std::hex << c;
  }
  for (const std::uint32_t c :
       {0x7eU, 0xa0U, 0x7ffU, 0x800U, 0xd7ffU, 0xe000U, 0xfffdU, 0xffffU, 0x10000U, 0x10ffffU}) {
    EXPECT_EQ(problem_with_name(encode(c)), std::nullopt) << "U+" << std::hex << c;
  }
}

TEST(Names, ControlCharactersAreRefusedAndTheirPlaceNamed) {
  EXPECT_NE(problem_with_name("a\0b"s)->find("control character at byte 1"), std::string::npos);
  EXPECT_NE(problem_with_name("ab\n")->find("byte 2"), std::string::npos);
  EXPECT_NE(problem_with_name("\x7f")->find("byte 0"), std::string::npos);
  EXPECT_NE(problem_with_name("ü\xc2\x85")->find("byte 2"), std::string::npos) << "C1";
}

TEST(Names, MalformedUtf8IsRefusedAndItsPlaceNamed) {
  const std::string_view bad[] = {
      "\x80",                  // continuation first
      "\xbf",                  //
      "\xc3",                  // cut short
      "\xe2\x82",              //
      "\xf0\x9f\x94",          //
      "\xc0\xaf",              // overlong '/'
      "\xc1\xbf",              //
      "\xe0\x80\xaf",          //
      "\xe0\x9f\xbf",          // overlong U+07FF
      "\xf0\x80\x80\xaf",      //
      "\xf0\x8f\xbf\xbf",      // overlong U+FFFF
      "\xed\xa0\x80",          // surrogate U+D800
      "\xed\xbf\xbf",          // surrogate U+DFFF
      "\xf4\x90\x80\x80",      // U+110000
      "\xf5\x80\x80\x80",      //
      "\xf8\x88\x80\x80\x80",  // five bytes
      "\xfe",                  //
      "\xff",                  //
      "\xc3(",                 // no continuation
      "\xe2\x28\xa1",          //
      "\xe2\x82\x28",          //
      "\xf0\x9f\x94\x28",      //
  };
  for (const std::string_view text : bad) {
    const auto problem = problem_with_name("ok" + std::string(text) + "ok");
    ASSERT_TRUE(problem) << util::quoted(text);
    EXPECT_NE(problem->find("not valid UTF-8 at byte 2"), std::string::npos) << *problem;
    EXPECT_TRUE(problem_with_name(text)) << util::quoted(text);
  }
}

TEST(Names, LabelsFollowTheSameRulesWithASmallerBound) {
  EXPECT_EQ(problem_with_label("billing"), std::nullopt);
  EXPECT_EQ(problem_with_label(std::string(64, 'x')), std::nullopt);
  EXPECT_NE(problem_with_label(std::string(65, 'x')), std::nullopt);
  EXPECT_NE(problem_with_label(""), std::nullopt);
  EXPECT_NE(problem_with_label("a\nb"), std::nullopt);
  EXPECT_NE(problem_with_label("\xff"), std::nullopt);
}

TEST(Names, SchemesAreThoseOfRfc3986InLowerCase) {
  for (const char* good : {"file", "a", "a1", "zookeeper+tls", "x-y", "x.y"}) EXPECT_TRUE(is_scheme(good)) << good;
  for (const char* bad : {"", "1a", "+a", "File", "a_b", "a/b", "a:b", "ä", " a", "a "}) {
    EXPECT_FALSE(is_scheme(bad)) << bad;
  }
  EXPECT_FALSE(is_scheme(std::string_view("a\0", 2)));
}

TEST(Names, QuotingShowsWhatCannotBePrintedAndNothingTooLong) {
  EXPECT_EQ(util::quoted("plain"), "\"plain\"");
  EXPECT_EQ(util::quoted("a\nb"), "\"a\\x0ab\"");
  EXPECT_EQ(util::quoted("\xff"), "\"\\xff\"");
  EXPECT_EQ(util::quoted("\xc2\x85"), "\"\\xc2\\x85\"") << "a C1 control";
  EXPECT_EQ(util::quoted("ü"), "\"ü\"");
  EXPECT_LT(util::quoted(std::string(100000, 'x')).size(), 100U);
  EXPECT_LT(util::quoted(std::string(100000, '\1')).size(), 100U);
  std::string wide;
  for (int i = 0; i < 100; ++i) wide += "🔒";
  EXPECT_EQ(problem_with_name(util::quoted(wide)), std::nullopt) << "not cut inside a character";
}

TEST(Names, ValuesMayBeEmptyAndLonger) {
  EXPECT_EQ(problem_with_value(""), std::nullopt);
  EXPECT_EQ(problem_with_value(std::string(1024, 'x')), std::nullopt);
  EXPECT_EQ(problem_with_value(std::string(1025, 'x')), "value is 1025 bytes long; at most 1024 are allowed");
  EXPECT_EQ(problem_with_value("a\nb"), "value \"a\\x0ab\" has a control character at byte 1");
  EXPECT_EQ(problem_with_value("\xff"), "value \"\\xff\" is not valid UTF-8 at byte 0");
}

TEST(Printable, LeavesWhatPeopleCanRead) {
  for (const std::string_view text : {"", "plain \\ text", "\u00e4\u6f22\U0001f512", "a\u200db"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(printable("\033]0;title\a\033[2J"), "\\x1b]0;title\\x07\\x1b[2J");
  EXPECT_EQ(printable("one\ntwo\r\t\b\x7f"), "one\\x0atwo\\x0d\\x09\\x08\\x7f");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(printable("\u009b2J"), "\\xc2\\x9b2J") << "CSI in one character";
  EXPECT_EQ(printable("\x9b"), "\\x9b") << "the same in one byte, which is not UTF-8";
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82") << "cut short";
}

TEST(Printable, ShowsWhatWouldChangeTheOrderOfTheText) {
  EXPECT_EQ(printable("a\u202eb\u2066c"), "a\\xe2\\x80\\xaeb\\xe2\\x81\\xa6c");
  EXPECT_EQ(printable("a\u2028b"), "a\\xe2\\x80\\xa8b");
  EXPECT_EQ(printable("a\u200fb"), "a\\xe2\\x80\\x8fb");
}

}  // namespace
}  // namespace dlock::util
