#include "bench/report/page/markup.hpp"

#include <gtest/gtest.h>

namespace dlock::bench {
namespace {

TEST(Markup, EscapesText) {
  EXPECT_EQ(escaped("<a href=\"x\">'&'</a>"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
  EXPECT_EQ(escaped(std::string("a\x01\x1b\0b\nc\td", 9)), "a   b\nc\td");
}

TEST(Markup, EscapesArgumentsThatAreText) {
  const std::string text = "<b>";
  EXPECT_EQ(markup("<p class=\"{}\">{} {:.1f}</p>", "\"", text, 1.25).str(), "<p class=\"&quot;\">&lt;b&gt; 1.2</p>");
}

TEST(Markup, InsertsMarkupAsItIs) {
  EXPECT_EQ(markup("<p>{}</p>", markup("<b>{}</b>", "&")).str(), "<p><b>&amp;</b></p>");
}

TEST(Markup, TextIsNoPattern) {
  EXPECT_EQ(markup("<p>{}</p>", "{0} {nonsense").str(), "<p>{0} {nonsense</p>");
}

}  // namespace
}  // namespace dlock::bench
