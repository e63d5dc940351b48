#include "model/pipeline/prompt_syntax.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "model/base/error.h"

namespace sdtune::model {
namespace {

using ::testing::HasSubstr;

// "text|weight" of each piece, "BREAK" for a break.
std::vector<std::string> pieces_of(const std::string& prompt) {
  std::vector<std::string> result;
  for (const PromptPiece& piece : parse_weighted_prompt(prompt)) {
    std::string weight = std::to_string(piece.weight);
    weight.resize(weight.find('.') + 4);
    result.push_back(piece.is_break ? "BREAK" : piece.text + "|" + weight);
  }
  return result;
}

using Pieces = std::vector<std::string>;

TEST(PromptSyntax, ReadsEmphasis) {
  EXPECT_EQ(pieces_of("a (b) [c] (d:1.5)"),
            (Pieces{"a |1.000", "b|1.100", " |1.000", "c|0.909", " |1.000", "d|1.500"}));
  EXPECT_EQ(pieces_of("((a:2) b)"), (Pieces{"a|2.200", " b|1.100"}));
  EXPECT_EQ(pieces_of("(a [b"), (Pieces{"a |1.100", "b|1.000"}));
  EXPECT_EQ(pieces_of(""), (Pieces{"|1.000"}));
}

TEST(PromptSyntax, LeavesWhatMeansNothing) {
  EXPECT_EQ(pieces_of("a) b] c: 12:30 d:1.2)"), (Pieces{"a) b] c: 12:30 d:1.2)|1.000"}));
  EXPECT_EQ(pieces_of(R"(\(a\) \[b\] \\ \c)"), (Pieces{R"((a) [b] \ c|1.000)"}));
}

TEST(PromptSyntax, BreaksAtTheWordAlone) {
  EXPECT_EQ(pieces_of("a BREAK b"), (Pieces{"a|1.000", "BREAK", "b|1.000"}));
  EXPECT_EQ(pieces_of("BREAKFAST, a_BREAK"), (Pieces{"BREAKFAST, a_BREAK|1.000"}));
  // Inside brackets too, where A1111 encodes the word.
  EXPECT_EQ(pieces_of("(a BREAK b:1.5)"), (Pieces{"a|1.500", "BREAK", "b|1.500"}));
}

TEST(PromptSyntax, RefusesWhatItCannotDo) {
  for (const auto& [prompt, named] :
       {std::pair{"(a:1.2.3)", "1.2.3"}, {"[a:b:0.5]", "[a:b:0.5]"}, {"[a|b]", "[a|b]"}}) {
    try {
      parse_weighted_prompt(prompt);
      ADD_FAILURE() << prompt;
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.problems().front().where, "prompt");
      EXPECT_THAT(error.what(), HasSubstr(named));
    }
  }
  EXPECT_THROW(parse_prompt_syntax("a1111", "x"), ConfigError);
}

}  // namespace
}  // namespace sdtune::model
