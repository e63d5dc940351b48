#include "app/cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sdtune::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Options {
  bool center_crop = false;
  double learning_rate = 1;
  std::string prompt = "default";
  std::vector<std::string> words;

  FieldList fields() {
    return {{{.name = "center_crop", .help = "h"}, &center_crop},
            {{.name = "learning_rate", .help = "h", .aliases = {"unet_lr"}}, &learning_rate},
            {{.name = "prompt", .help = "h"}, &prompt},
            {{.name = "words", .help = "h"}, &words}};
  }
};

// Parses and applies; the problems of both.
std::vector<Problem> parse(Options& options, const std::vector<std::string>& words) {
  Arguments arguments = parse_arguments(words, options.fields());
  Origins origins;
  apply_settings(options.fields(), arguments.settings, origins, arguments.problems);
  return arguments.problems;
}

std::string only_problem(const std::vector<std::string>& words) {
  Options options;
  const std::vector<Problem> problems = parse(options, words);
  EXPECT_EQ(problems.size(), 1u);
  return problems.empty() ? "" : problems.front().line();
}

TEST(Arguments, EverySpelling) {
  for (const char* flag : {"--learning-rate", "--learning_rate", "--unet-lr", "--unet_lr"}) {
    Options options;
    EXPECT_THAT(parse(options, {flag, "0.5"}), IsEmpty()) << flag;
    EXPECT_EQ(options.learning_rate, 0.5) << flag;
    EXPECT_THAT(parse(options, {std::string(flag) + "=0.25"}), IsEmpty()) << flag;
    EXPECT_EQ(options.learning_rate, 0.25) << flag;
  }
}

TEST(Arguments, BoolStandsAloneTakesAValueOrIsDenied) {
  Options options;
  EXPECT_THAT(parse(options, {"--center-crop"}), IsEmpty());
  EXPECT_TRUE(options.center_crop);
  EXPECT_THAT(parse(options, {"--center-crop", "false"}), IsEmpty());
  EXPECT_FALSE(options.center_crop);
  EXPECT_THAT(parse(options, {"--center_crop=yes"}), IsEmpty());
  EXPECT_TRUE(options.center_crop);
  EXPECT_THAT(parse(options, {"--no-center-crop"}), IsEmpty());
  EXPECT_FALSE(options.center_crop);
  EXPECT_THAT(parse(options, {"--center-crop", "--learning-rate", "2"}), IsEmpty());
  EXPECT_TRUE(options.center_crop);
  EXPECT_EQ(options.learning_rate, 2);
  EXPECT_THAT(only_problem({"--center-crop", "--no-center-crop"}), HasSubstr("together with --no-center-crop"));
  EXPECT_THAT(only_problem({"--center-crop", "maybe"}), HasSubstr("must be true or false (got maybe"));
}

// As --no-center-crop it would switch off what it asks for.
TEST(Arguments, ADenialTakesNoValue) {
  for (const char* value : {"false", "0", "no", "perhaps"}) {
    const std::string line = only_problem({std::string("--no-center-crop=") + value});
    EXPECT_THAT(line, HasSubstr(std::string("--no-center-crop: takes no value (got ") + value)) << value;
  }
  Options options;
  options.center_crop = true;
  EXPECT_THAT(parse(options, {"--no-center-crop", "--no_center_crop"}), IsEmpty());
  EXPECT_FALSE(options.center_crop);
}

TEST(Arguments, AnEmptyValueBehindTheNameTakesNoOtherWord) {
  Options options;
  EXPECT_THAT(parse(options, {"--prompt=", "--center-crop"}), IsEmpty());
  EXPECT_EQ(options.prompt, "");
  EXPECT_TRUE(options.center_crop);
  EXPECT_THAT(parse(options, {"--prompt=", "--learning-rate=2"}), IsEmpty());
  EXPECT_EQ(options.prompt, "");
  EXPECT_EQ(options.learning_rate, 2);
  EXPECT_THAT(parse(options, {"--words=", "--words", "a"}), IsEmpty());
  EXPECT_THAT(options.words, ElementsAre("", "a"));
  EXPECT_THAT(only_problem({"--learning-rate=", "3"}), HasSubstr("--learning-rate"));
  EXPECT_THAT(only_problem({"--center-crop=", "--learning-rate", "2"}), HasSubstr("must be true or false (got"));
}

TEST(Arguments, ValuesOfUnusualForm) {
  Options options;
  EXPECT_THAT(parse(options, {"--learning-rate", "-3e-4"}), IsEmpty());
  EXPECT_EQ(options.learning_rate, -3e-4);
  EXPECT_THAT(parse(options, {"--prompt", ""}), IsEmpty());
  EXPECT_EQ(options.prompt, "");
  EXPECT_THAT(parse(options, {"--prompt", "a_b, [c] --d=\"e\""}), IsEmpty());
  EXPECT_EQ(options.prompt, "a_b, [c] --d=\"e\"");
  EXPECT_THAT(parse(options, {"--prompt=--learning_rate"}), IsEmpty());
  EXPECT_EQ(options.prompt, "--learning_rate");
  EXPECT_THAT(parse(options, {"--prompt", "[a, b]"}), IsEmpty());
  EXPECT_EQ(options.prompt, "[a, b]");
  EXPECT_THAT(parse(options, {"--prompt", "\xC3\xA9\xF0\x9F\x98\x80"}), IsEmpty());
  EXPECT_EQ(options.prompt, "\xC3\xA9\xF0\x9F\x98\x80");
}

TEST(Arguments, LastOneWinsAndListsCollect) {
  Options options;
  EXPECT_THAT(parse(options, {"--prompt", "a", "--words", "x, y", "--prompt", "b", "--words", "z"}), IsEmpty());
  EXPECT_EQ(options.prompt, "b");
  EXPECT_THAT(options.words, ElementsAre("x, y", "z"));
}

TEST(Arguments, UnknownFlagsAllAtOnceWithTheNearest) {
  Options options;
  const std::vector<Problem> problems =
      parse(options, {"--learnig-rate", "1e-4", "--center_corp", "--banana=3", "--prompt", "a", "-x"});
  ASSERT_THAT(problems, SizeIs(4));
  EXPECT_EQ(problems[0].line(), "--learnig-rate: unknown option; did you mean --learning-rate?");
  EXPECT_EQ(problems[1].line(), "--center_corp: unknown option; did you mean --center-crop?");
  EXPECT_THAT(problems[2].line(), HasSubstr("--banana: unknown option"));
  EXPECT_THAT(problems[3].line(), HasSubstr("-x: unknown option"));
  EXPECT_EQ(options.prompt, "a");
}

TEST(Arguments, MissingValues) {
  EXPECT_EQ(only_problem({"--learning-rate"}), "--learning-rate: has no value (allowed: float)");
  EXPECT_THAT(only_problem({"--prompt", "--learning-rate", "2"}), HasSubstr("--learning-rate follows"));
  EXPECT_THAT(only_problem({"--prompt", "--no-center-crop"}), HasSubstr("--no-center-crop follows"));
  EXPECT_THAT(only_problem({"--prompt", "--help"}), HasSubstr("--help follows"));
  Options options;
  EXPECT_THAT(parse(options, {"--prompt", "--no-words", "--words", "--no one"}), IsEmpty());
  EXPECT_EQ(options.prompt, "--no-words");  // no bool
}

TEST(Arguments, AMissingValueLeavesTheOtherWords) {
  Options options;
  EXPECT_THAT(parse(options, {"--words", "a", "--prompt", "--learning-rate", "2", "--center-crop"}), SizeIs(1));
  EXPECT_THAT(options.words, ElementsAre("a"));
  EXPECT_EQ(options.prompt, "default");
  EXPECT_EQ(options.learning_rate, 2);
  EXPECT_TRUE(options.center_crop);
  const std::vector<Problem> problems = parse(options, {"--prompt", "b", "--banana", "--words"});
  ASSERT_THAT(problems, SizeIs(2));
  EXPECT_THAT(problems[0].line(), HasSubstr("--words: has no value"));
  EXPECT_THAT(problems[1].line(), HasSubstr("--banana: unknown option"));
  EXPECT_EQ(options.prompt, "b");
}

TEST(Arguments, PositionalsAndHelp) {
  Options options;
  const Arguments arguments = parse_arguments({"folder", "--prompt", "a", "other"}, options.fields());
  EXPECT_THAT(arguments.positionals, ElementsAre("folder", "other"));
  EXPECT_FALSE(arguments.help);
  EXPECT_TRUE(parse_arguments({"--help"}, options.fields()).help);
  EXPECT_TRUE(parse_arguments({"-h"}, options.fields()).help);
}

TEST(Arguments, TakesOutTheSettingsOfSomeFields) {
  Options options;
  Arguments arguments = parse_arguments({"--prompt", "a", "--learning-rate", "1"}, options.fields());
  const std::vector<Setting> taken = take_settings(arguments, {options.fields()[2]});
  ASSERT_THAT(taken, SizeIs(1));
  EXPECT_EQ(taken[0].name, "prompt");
  ASSERT_THAT(arguments.settings, SizeIs(1));
  EXPECT_EQ(arguments.settings[0].origin, "--learning-rate");
}

}  // namespace
}  // namespace sdtune::app
