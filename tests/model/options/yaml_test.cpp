#include "model/options/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/error.h"

namespace sdtune {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::string refusal(const std::string& text) {
  try {
    parse_yaml(text, "me.yaml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Yaml, KeepsOrderKindsAndLines) {
  const YamlValue root = parse_yaml(
      "# comment\n"
      "seed: 3\n"
      "prompts:\n"
      "  - a dog\n"
      "  - \"b: c\"\n"
      "empty:\n"
      "quoted: \"null\"\n"
      "nested: {x: 1}\n",
      "me.yaml");
  ASSERT_EQ(root.kind, YamlValue::Kind::kMapping);
  ASSERT_THAT(root.entries, SizeIs(5));
  EXPECT_EQ(root.entries[0].first, "seed");
  EXPECT_EQ(root.entries[0].second.text, "3");
  EXPECT_EQ(root.entries[0].second.line, 2);
  ASSERT_THAT(root.entries[1].second.items, SizeIs(2));
  EXPECT_EQ(root.entries[1].second.items[1].text, "b: c");
  EXPECT_EQ(root.entries[1].second.items[1].line, 5);
  EXPECT_EQ(root.entries[2].second.kind, YamlValue::Kind::kNull);
  EXPECT_EQ(root.entries[3].second.kind, YamlValue::Kind::kScalar);
  EXPECT_TRUE(root.entries[3].second.quoted);
  EXPECT_EQ(root.entries[4].second.kind, YamlValue::Kind::kMapping);
  EXPECT_EQ(root.entries[4].second.line, 8);
}

TEST(Yaml, EmptyIsNull) {
  EXPECT_EQ(parse_yaml("", "me.yaml").kind, YamlValue::Kind::kNull);
  EXPECT_EQ(parse_yaml("# only a comment\n", "me.yaml").kind, YamlValue::Kind::kNull);
  EXPECT_EQ(parse_yaml("---\n", "me.yaml").kind, YamlValue::Kind::kNull);
}

TEST(Yaml, AcceptsWindowsLineEndsAndTabsInsideALine) {
  EXPECT_EQ(parse_yaml("seed: 3\r\nsteps: 4\r\n", "me.yaml").entries[1].second.text, "4");
  EXPECT_EQ(parse_yaml("seed: 3\t# a tab before the comment\n", "me.yaml").entries[0].second.text, "3");
  EXPECT_EQ(parse_yaml("prompt: \"\xC3\xA9 \xF0\x9F\x98\x80\"\n", "me.yaml").entries[0].second.text,
            "\xC3\xA9 \xF0\x9F\x98\x80");
}

TEST(Yaml, RefusesWithFileAndLine) {
  std::string deep(40, '[');
  deep += std::string(40, ']');
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"seed: 1\nsteps: 2\nseed: 3\n", "me.yaml:3: key seed is given twice (first in line 1)"},
      {"a: &x 1\nb: *x\n", "me.yaml:1: anchors and aliases"},
      {"a: 1\nb: *x\n", "me.yaml:2: "},
      {"a: !!python/object:os.system 1\n", "me.yaml:1: tags are not allowed"},
      {"a: !local 1\n", "me.yaml:1: tags are not allowed"},
      {"a:\n\tb: 1\n", "me.yaml:2: is indented with a tab"},
      {"  \ta: 1\n", "me.yaml:1: is indented with a tab"},
      {"\xEF\xBB\xBFseed: 1\n", "me.yaml:1: begins with a byte order mark"},
      {std::string("\xFF\xFEs\0", 4), "me.yaml:1: begins with a byte order mark"},
      {"a: 1\nb: \xC3\x28\n", "me.yaml:2: is not UTF-8"},
      {"a: \xC0\x80\n", "me.yaml:1: is not UTF-8"},
      {"a: \xED\xA0\x80\n", "me.yaml:1: is not UTF-8"},
      {std::string("a: b\0c\n", 7), "me.yaml:1: holds the control character 0"},
      {"a: \x1b[31m\n", "me.yaml:1: holds the control character 27"},
      {"a: 1\n---\nb: 2\n", "me.yaml: holds more than one document"},
      {deep, "me.yaml:1: is nested deeper than 32 levels"},
      {"a: [1, 2\n", "me.yaml:2: is not YAML"},
      {"a: \"open\n", "me.yaml:1: a quote is not closed"},
      {"a: \"\xC3\xA9\"\nb: 'open''s\nc: it\n", "me.yaml:2: a quote is not closed"},
      {"a: 1\n b: 2\n", "me.yaml:"},
      {"? [a, b]\n: 1\n", "me.yaml:1: a key must be a word"},
      {"? {a: 1}\n: 1\n", "me.yaml:1: a key must be a word"},
      {std::string((1 << 20) + 1, '#'), "me.yaml: is too large"},
  };
  for (const auto& [text, said] : cases) {
    EXPECT_THAT(refusal(text), StartsWith(said)) << text.substr(0, 100);
    EXPECT_THAT(refusal(text), Not(HasSubstr("\n")));
  }
}

TEST(Yaml, AliasBombCostsNothing) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int level = 1; level < 20; ++level) {
    const std::string name = "a" + std::to_string(level);
    const std::string before = "*a" + std::to_string(level - 1);
    bomb += name + ": &" + name + " [" + before + ", " + before + ", " + before + "]\n";
  }
  EXPECT_THAT(refusal(bomb), StartsWith("me.yaml:1: anchors and aliases are not allowed"));
}

TEST(Yaml, ReportsEveryDuplicate) {
  try {
    parse_yaml("a: 1\nb: 1\na: 2\nb: 2\n", "me.yaml");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.problems(), SizeIs(2));
  }
}

// Not all pairs of a key that is there n times.
TEST(Yaml, ReportsARepeatedKeyOncePerLine) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "seed: 1\n";
  try {
    parse_yaml(text, "me.yaml");
    FAIL();
  } catch (const ConfigError& error) {
    ASSERT_THAT(error.problems(), SizeIs(299));
    EXPECT_EQ(error.problems().back().line(), "me.yaml:300: key seed is given twice (first in line 1)");
  }
}

TEST(Yaml, FileThatIsAbsentOrAFolder) {
  EXPECT_THROW(read_yaml("/nonexistent/me.yaml"), ConfigError);
  EXPECT_THROW(read_yaml("/"), ConfigError);
}

}  // namespace
}  // namespace sdtune
