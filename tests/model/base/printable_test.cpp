#include "model/base/printable.h"

#include <gtest/gtest.h>

#include "model/base/error.h"

namespace sdtune {
namespace {

TEST(Printable, WritesOutControlCharactersAndNothingElse) {
  EXPECT_EQ(printable("\x1b[31mred\x07\x7f\r\n"), "\\x1b[31mred\\x07\\x7f\\x0d\\x0a");
  EXPECT_EQ(printable("a\xc2\x9b"
                      "2J"),
            "a\\xc2\\x9b2J");  // U+009B, which some terminals take for ESC [
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("Zo\xc3\xab, \xe5\x86\x99\xe7\x9c\x9f \xc2\xa0\xc2"),
            "Zo\xc3\xab, \xe5\x86\x99\xe7\x9c\x9f \xc2\xa0\xc2");
}

TEST(Printable, ErrorsOfHostileNamesCommandNoTerminal) {
  const WeightError error("file.safetensors: a\x1b]0;owned\x07", "is of\nno use", "try \x1b[2J");
  EXPECT_EQ(error.problems().front().line(), "file.safetensors: a\\x1b]0;owned\\x07: is of no use; try \\x1b[2J");
  EXPECT_EQ(error.what(), error.problems().front().line());
}

}  // namespace
}  // namespace sdtune
