#include "model/options/field.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/error.h"

namespace sdtune {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One option of each type.
struct Options {
  bool flag = false;
  std::int64_t count = 4;
  double rate = 1e-4;
  std::string name = "cosine";
  std::vector<std::string> prompts;
  std::optional<bool> maybe_flag;
  std::optional<std::int64_t> maybe_count;
  std::optional<double> maybe_rate;
  std::optional<std::string> maybe_name;

  FieldList fields() {
    return {
        {{.name = "center_crop", .help = "h"}, &flag},
        {{.name = "max_train_steps", .help = "h", .unit = "steps", .min = 1, .aliases = {"steps"}}, &count},
        {{.name = "learning_rate", .help = "h", .min = 0, .max = 1, .exclusive_min = true}, &rate},
        {{.name = "lr_scheduler", .help = "h", .choices = {"linear", "cosine"}}, &name},
        {{.name = "validation_prompts", .help = "h"}, &prompts},
        {{.name = "maybe_flag", .help = "h"}, &maybe_flag},
        {{.name = "maybe_count", .help = "h", .max = 10}, &maybe_count},
        {{.name = "maybe_rate", .help = "h"}, &maybe_rate},
        {{.name = "maybe_name", .help = "h"}, &maybe_name},
    };
  }
};

std::string refusal(Options& options, const std::string& name, const std::string& text,
                    const std::string& where = "here") {
  const FieldList fields = options.fields();
  try {
    set_field(*find_field(fields, name), text, where);
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.problems().size(), 1u);
    EXPECT_EQ(error.problems().front().where, where);
    return error.what();
  }
  ADD_FAILURE() << name << " took " << text;
  return "";
}

void set(Options& options, const std::string& name, const std::string& text) {
  const FieldList fields = options.fields();
  set_field(*find_field(fields, name), text, "here");
}

TEST(Field, SetsEachType) {
  Options options;
  set(options, "center_crop", "Yes");
  set(options, "max_train_steps", "9007199254740993");
  set(options, "learning_rate", "2e-6");
  set(options, "lr_scheduler", "linear");
  set(options, "validation_prompts", "a dog, running");
  set(options, "maybe_flag", "off");
  set(options, "maybe_count", "-7");
  set(options, "maybe_rate", ".5");
  set(options, "maybe_name", "x: y");
  EXPECT_TRUE(options.flag);
  EXPECT_EQ(options.count, 9007199254740993);  // not through a double
  EXPECT_EQ(options.rate, 2e-6);
  EXPECT_EQ(options.name, "linear");
  EXPECT_THAT(options.prompts, ElementsAre("a dog, running"));
  EXPECT_EQ(options.maybe_flag, false);
  EXPECT_EQ(options.maybe_count, -7);
  EXPECT_EQ(options.maybe_rate, 0.5);
  EXPECT_EQ(options.maybe_name, "x: y");
}

TEST(Field, OptionalIsUnsetByNone) {
  Options options;
  for (const char* word : {"none", "null", "~", "NULL"}) {
    options.maybe_count = 3;
    options.maybe_name = "name";
    set(options, "maybe_count", word);
    set(options, "maybe_name", word);
    EXPECT_FALSE(options.maybe_count.has_value()) << word;
    EXPECT_FALSE(options.maybe_name.has_value()) << word;
  }
}

TEST(Field, RefusesWhatDoesNotFit) {
  struct Case {
    const char* name;
    const char* text;
    const char* said;
  };
  const Case cases[] = {
      {"center_crop", "maybe", "true or false"},
      {"center_crop", "", "got nothing"},
      {"max_train_steps", "ten", "must be an integer"},
      {"max_train_steps", "10.5", "must be an integer"},
      {"max_train_steps", "1e3", "must be an integer"},
      {"max_train_steps", " 10", "must be an integer"},
      {"max_train_steps", "0", "x >= 1"},
      {"max_train_steps", "-3", "x >= 1"},
      {"max_train_steps", "9223372036854775808", "does not fit into 64 bits"},
      {"max_train_steps", "none", "must be an integer"},
      {"learning_rate", "nan", "must be finite"},
      {"learning_rate", "-inf", "must be finite"},
      {"learning_rate", ".nan", "must be a number"},
      {"learning_rate", "1e999", "does not fit into 64 bits"},
      {"learning_rate", "0", "0 < x <= 1"},
      {"learning_rate", "1.5", "out of range"},
      {"learning_rate", "0x10", "must be a number"},
      {"learning_rate", "1e-4 ", "must be a number"},
      {"lr_scheduler", "cosin", "nearest is cosine"},
      {"lr_scheduler", "sawtooth", "one of linear, cosine"},
      {"maybe_count", "11", "x <= 10"},
      {"maybe_rate", "inf", "must be finite"},
  };
  for (const Case& bad : cases) {
    Options options;
    const std::string text = refusal(options, bad.name, bad.text);
    EXPECT_THAT(text, AllOf(HasSubstr(bad.said), HasSubstr(bad.name), HasSubstr("allowed: "))) << text;
    EXPECT_THAT(text, HasSubstr(*bad.text ? std::string("got ") + bad.text : "got nothing"));
  }
}

TEST(Field, ErrorDoesNotRepeatTheNameThatThePlaceSays) {
  Options options;
  EXPECT_EQ(refusal(options, "learning_rate", "-1", "--learning-rate"),
            "--learning-rate: is out of range (got -1; allowed: 0 < x <= 1)");
  EXPECT_EQ(refusal(options, "learning_rate", "-1", "me.yaml:3"),
            "me.yaml:3: learning_rate is out of range (got -1; allowed: 0 < x <= 1)");
}

TEST(Field, ErrorShortensAPastedFile) {
  Options options;
  EXPECT_LT(refusal(options, "max_train_steps", std::string(1 << 20, 'x')).size(), 250u);
}

TEST(Field, ListTakesItemsAndScalarsDoNot) {
  Options options;
  const FieldList fields = options.fields();
  set_field(*find_field(fields, "validation_prompts"), std::vector<std::string>{"a", "b, c"}, "here");
  EXPECT_THAT(options.prompts, ElementsAre("a", "b, c"));
  EXPECT_THROW(set_field(*find_field(fields, "max_train_steps"), std::vector<std::string>{"1", "2"}, "here"),
               ConfigError);
  set_field(*find_field(fields, "validation_prompts"), "", "here");
  EXPECT_TRUE(options.prompts.empty());
}

TEST(Field, TextReadsBackBitForBit) {
  for (const double value : {2e-6, 1.0, 0.1, 1e-8, 123456789.125, 5e-324, 1.7976931348623157e308, 0.00085}) {
    Options options;
    options.maybe_rate = value;
    const FieldList fields = options.fields();
    const std::string text = field_text(*find_field(fields, "maybe_rate"));
    options.maybe_rate.reset();
    set(options, "maybe_rate", text);
    EXPECT_EQ(options.maybe_rate, value) << text;
    EXPECT_NE(text.find('.'), std::string::npos) << text << " is a string to YAML 1.1";
  }
}

TEST(Field, TextQuotesWhatYamlWouldMistake) {
  EXPECT_EQ(yaml_quoted("a photo of sks person"), "a photo of sks person");
  EXPECT_EQ(yaml_quoted("runs/me-2"), "runs/me-2");
  for (const char* text : {"", "no", "Null", "12", "1e5", "a: b", "# c", "- d", "it's", "a #b", "x ", "~", "@a", "é"}) {
    EXPECT_EQ(yaml_quoted(text).front(), '"') << text;
  }
  EXPECT_EQ(yaml_quoted("a\"b\\c\nd\te"), "\"a\\\"b\\\\c\\nd\\x09e\"");
}

TEST(Field, DescribesTypeAndRange) {
  Options options;
  const FieldList fields = options.fields();
  EXPECT_EQ(field_type(*find_field(fields, "maybe_count")), "int");
  EXPECT_EQ(field_type(*find_field(fields, "learning_rate")), "float");
  EXPECT_EQ(field_type(*find_field(fields, "validation_prompts")), "list of strings");
  EXPECT_EQ(field_range(*find_field(fields, "learning_rate")), "0 < x <= 1");
  EXPECT_EQ(field_range(*find_field(fields, "max_train_steps")), "x >= 1");
  EXPECT_EQ(field_range(*find_field(fields, "lr_scheduler")), "one of linear, cosine");
  EXPECT_EQ(field_range(*find_field(fields, "maybe_name")), "");
}

TEST(Field, IsFoundInEitherSpellingAndByAlias) {
  Options options;
  const FieldList fields = options.fields();
  EXPECT_EQ(find_field(fields, "learning-rate"), find_field(fields, "learning_rate"));
  EXPECT_EQ(find_field(fields, "steps")->info.name, "max_train_steps");
  EXPECT_EQ(find_field(fields, "learning_rat"), nullptr);
  EXPECT_EQ(flag_name("learning_rate"), "--learning-rate");
}

}  // namespace
}  // namespace sdtune
