#include "model/tokenizer/clip_text_cleanup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/base/error.h"

namespace sdtune {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string cleaned(const std::string& text) {
  return encode_utf8(clean_clip_text(decode_utf8(text)));
}

std::vector<std::string> words(const std::string& text) {
  return split_clip_words(clean_clip_text(decode_utf8(text)));
}

std::string error_of(const std::string& text) {
  try {
    decode_utf8(text);
  } catch (const DataError& error) {
    return error.problems().front().line();
  }
  return "";
}

TEST(ClipTextCleanup, ComposesAndLowers) {
  EXPECT_EQ(cleaned("E\u0301COLE"), "\u00e9cole");
  EXPECT_EQ(cleaned("\u212b"), "\u00e5");               // the Angstrom sign is the letter
  EXPECT_EQ(cleaned("a\u0323\u0301"), "\u1ea1\u0301");  // marks in canonical order, then composed
  EXPECT_EQ(cleaned("a\u0301\u0323"), "\u1ea1\u0301");
  EXPECT_EQ(cleaned("\u0130"), "i\u0307");             // the one lower case of two characters
  EXPECT_EQ(cleaned("\u1112\u1161\u11ab"), "\ud55c");  // Hangul
}

TEST(ClipTextCleanup, WhiteSpaceRunsBecomeOneSpace) {
  EXPECT_EQ(cleaned("a \t\n\u00a0\u3000b"), "a b");
  EXPECT_EQ(cleaned("a\u200bb"), "a\u200bb");  // zero width space is none
}

TEST(ClipTextCleanup, WordsOfThePattern) {
  EXPECT_THAT(words("It's 42 dogs!?"), ElementsAre("it", "'s", "4", "2", "dogs", "!?"));
  EXPECT_THAT(words("we'll''ve"), ElementsAre("we", "'ll", "''", "ve"));
  EXPECT_THAT(words("!'s"), ElementsAre("!'", "s"));
  EXPECT_THAT(words(" \n"), IsEmpty());
  EXPECT_THAT(words("<|EndOfText|>!"), ElementsAre("<|", "endoftext", "|>", "!"));
  EXPECT_THAT(words("\u4f60\u597d\uff0c2"), ElementsAre("\u4f60\u597d", "\uff0c", "2"));
}

TEST(ClipTextCleanup, KnowsLettersNewerThanTheLibrary) {
  EXPECT_THAT(words("a\U0001e5d0b"), ElementsAre("a\U0001e5d0b"));  // Ol Onal, Unicode 16
  EXPECT_EQ(cleaned("\ua7cb"), "\u0264");
}

TEST(ClipTextCleanup, InvalidUtf8NamesTheByte) {
  EXPECT_NE(error_of("abc\xff").find("byte 3"), std::string::npos);
  EXPECT_NE(error_of("\xed\xa0\x80").find("byte 0"), std::string::npos);  // a surrogate
  EXPECT_NE(error_of("ab\xc3").find("byte 2"), std::string::npos);        // cut
  EXPECT_NE(error_of("\xc0\xaf").find("byte 0"), std::string::npos);      // overlong
  EXPECT_EQ(error_of(std::string("a\0b", 3)), "");
}

TEST(ClipTextCleanup, LongRunsOfMarksAreSorted) {
  // Alternating classes: exchanging neighbours would take 10^10 steps.
  std::u32string marks = U"a";
  for (int i = 0; i < 100000; ++i) marks += i % 2 == 0 ? U'\u0301' : U'\u0323';
  const std::u32string clean = clean_clip_text(marks);
  EXPECT_EQ(clean.substr(0, 2), U"\u1ea1\u0323");
  EXPECT_EQ(clean.back(), U'\u0301');
}

}  // namespace
}  // namespace sdtune
