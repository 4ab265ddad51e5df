/// Text of others on a terminal.

#include "datatypes/printable.hpp"

#include <gtest/gtest.h>

namespace isohalo {
namespace {

TEST(Printable, PlainTextStays) {
  for (const std::string text : {"", "field u: \"x\" \\n \\", "\u00e9\u4e2d\U0001f600", "~ !"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, WhatActsIsShown) {
  EXPECT_EQ(printable("a\x1b[31m\r\n\tb\x7f"), "a\\x1b[31m\\r\\n\\tb\\x7f");
  EXPECT_EQ(printable(std::string_view("\0x", 2)), "\\x00x");
  EXPECT_EQ(printable("\u009b2J \u200b\u200f\u2028\u2029\u202e\u2066\ufeff\U000e0041"),
            "\\u009b2J \\u200b\\u200f\\u2028\\u2029\\u202e\\u2066\\ufeff\\U000e0041");
}

TEST(Printable, WhatIsNoUtf8IsShown) {
  // A byte that begins nothing, a lead byte alone, two spellings of '/' and NUL, half a surrogate, beyond the last.
  EXPECT_EQ(printable("\x80|\xc3|\xc0\xaf|\xe0\x80\x80|\xed\xa0\x80|\xf4\x90\x80\x80|\xff|\xe2\x80"),
            "\\x80|\\xc3|\\xc0\\xaf|\\xe0\\x80\\x80|\\xed\\xa0\\x80|\\xf4\\x90\\x80\\x80|\\xff|\\xe2\\x80");
}

TEST(Printable, AgainChangesNothing) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += std::string{'x', static_cast<char>(byte)};
  EXPECT_EQ(printable(printable(all)), printable(all));
}

TEST(Printable, XmlText) {
  EXPECT_EQ(xml_text("a<b>&\"c\"\n\x1b\xff\u00e9"), "a&lt;b&gt;&amp;&quot;c&quot;???\u00e9");
}

TEST(Printable, AListOfErrorsHasItsOwnLinesOnly) {
  EXPECT_STREQ(ErrorList({"one\ntwo", "three"}).what(), "one\\ntwo\nthree");
}

}  // namespace
}  // namespace isohalo
