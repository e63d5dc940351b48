#include "model/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/error.h"

namespace sdtune {
namespace {

using ::testing::HasSubstr;

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const WeightError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Json, RefusesWhatAHostileFileCanHide) {
  const auto parse = [](const std::string& text) { return error_of([&] { parse_json(text, "c.json"); }); };
  EXPECT_THAT(parse(R"({"a":1,"a":2})"), HasSubstr("c.json: the key 'a' is given twice"));
  EXPECT_THAT(parse(R"({"b":{"a":1,"a":2}})"), HasSubstr("given twice"));
  EXPECT_THAT(parse(std::string(100'000, '[')), HasSubstr("nested deeper than 64"));
  EXPECT_THAT(parse("{} x"), HasSubstr("not JSON"));
  EXPECT_THAT(parse(""), HasSubstr("not JSON"));
  EXPECT_THAT(parse("{\"\xC3\":1}"), HasSubstr("not JSON"));
  EXPECT_THAT(parse("\xFF\xFE{}"), HasSubstr("not JSON"));
  EXPECT_THAT(parse("{'a':1}"), HasSubstr("not JSON"));
  EXPECT_THAT(parse(R"({"a":1e999})"), HasSubstr("not JSON"));
  EXPECT_THAT(parse(R"({"a":NaN})"), HasSubstr("not JSON"));
  EXPECT_EQ(parse_json(R"({"b":[1,2],"a":{"b":1}})", "c.json").dump(), R"({"b":[1,2],"a":{"b":1}})");
}

TEST(Json, ValidTextReplacesWhatIsNoUtf8Alone) {
  const std::string right =
      "M\xC3\xA4"
      "dchen, \"so\"\n\t\\";
  EXPECT_EQ(valid_text(right), right);
  EXPECT_EQ(valid_text("caf\xE9.png"), "caf\xEF\xBF\xBD.png");
  EXPECT_EQ(valid_text(""), "");
}

TEST(JsonObject, ReadsFieldsOfTheRightType) {
  const Json json = parse_json(
      R"({"i":3,"f":0.5,"b":true,"s":"x","l":[1,2],"one":7,"flags":[true,false],"words":["a"],"none":null})", "c");
  JsonObject object(json, "c.json");
  EXPECT_EQ(object.integer("i"), 3);
  EXPECT_EQ(object.integer("none", 4), 4);
  EXPECT_EQ(object.number("f", 0), 0.5);
  EXPECT_EQ(object.number("absent", 2.5), 2.5);
  EXPECT_TRUE(object.boolean("b", false));
  EXPECT_EQ(object.string("s", ""), "x");
  EXPECT_EQ(object.integers("l"), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(object.integers("one"), (std::vector<std::int64_t>{7}));
  EXPECT_EQ(object.booleans("flags"), (std::vector<bool>{true, false}));
  EXPECT_EQ(object.strings("words"), (std::vector<std::string>{"a"}));
  EXPECT_FALSE(object.has("none"));
  object.finish();
}

TEST(JsonObject, NamesFileKeyAndValueOfAWrongType) {
  const Json json = parse_json(R"({"i":1.5,"s":3,"b":"yes","l":[1,"2"],"big":18446744073709551615,"n":"1"})", "c");
  JsonObject object(json, "c.json");
  EXPECT_THAT(error_of([&] { object.integer("i"); }), HasSubstr("c.json: i: must be an integer (got 1.5)"));
  EXPECT_THAT(error_of([&] { object.integer("absent"); }), HasSubstr("is missing"));
  EXPECT_THAT(error_of([&] { object.integer("big"); }), HasSubstr("too large"));
  EXPECT_THAT(error_of([&] { object.string("s", ""); }), HasSubstr("must be a string (got 3)"));
  EXPECT_THAT(error_of([&] { object.boolean("b", true); }), HasSubstr("must be true or false"));
  EXPECT_THAT(error_of([&] { object.integers("l"); }), HasSubstr("list of integers"));
  EXPECT_THAT(error_of([&] { object.number("n", 0); }), HasSubstr("finite number"));
  EXPECT_THAT(error_of([&] { object.require("s", 4); }), HasSubstr("not supported (got 3; allowed: 4)"));
  EXPECT_THAT(error_of([] { JsonObject(Json::array(), "c.json"); }), HasSubstr("must be a JSON object"));
}

TEST(JsonObject, NamesEveryUnknownKeyAndTheNearest) {
  const Json json = parse_json(R"({"sample_size":1,"sampel_size":2,"other":3,"_diffusers_version":"1"})", "c");
  JsonObject object(json, "c.json");
  object.integer("sample_size");
  const std::string error = error_of([&] { object.finish(); });
  EXPECT_THAT(error,
              HasSubstr("c.json: sampel_size: is not a key that sdtune supports (got 2); did you mean 'sample_size'?"));
  EXPECT_THAT(error, HasSubstr("other"));
}

}  // namespace
}  // namespace sdtune
