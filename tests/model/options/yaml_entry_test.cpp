#include "model/options/yaml_entry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/error.h"

namespace sdtune {
namespace {

using testing::HasSubstr;

TEST(YamlEntry, SaysWhatIsThere) {
  const YamlValue value = parse_yaml("name: A\nsize: 1.5\nlist: [1, 2]\n", "t.yaml");
  const YamlEntry entry(value, "t.yaml", {"name", "size", "list", "absent"});
  EXPECT_EQ(entry.text("name"), "A");
  EXPECT_EQ(entry.one_of("name", {"A", "B"}), "A");
  EXPECT_EQ(entry.number("size", 2), 1.5);
  EXPECT_EQ(entry.number("absent", 2, 0.5), 0.5);
  EXPECT_EQ(entry.items("list").size(), 2U);
  EXPECT_TRUE(entry.items("absent").empty());
  EXPECT_EQ(entry.find("absent"), nullptr);
}

TEST(YamlEntry, ReadsEveryWayToWriteANumber) {
  const YamlValue value = parse_yaml("a: 1.5\nb: +1.5\nc: 15e-1\nd: \"1,5\"\ne: 1.5x\nf: \"\"\n", "t.yaml");
  const YamlEntry entry(value, "t.yaml", {"a", "b", "c", "d", "e", "f"});
  for (const char* key : {"a", "b", "c"}) EXPECT_EQ(entry.number(key, 2), 1.5) << key;
  for (const char* key : {"d", "e", "f"}) EXPECT_THROW(entry.number(key, 2), ConfigError) << key;
}

TEST(YamlEntry, ErrorsNameLineAndWhatIsAllowed) {
  const YamlValue value = parse_yaml("name: A\nsize: 3\n", "t.yaml");
  const YamlEntry entry(value, "t.yaml", {"name", "size"});
  const auto error = [](const auto& call) {
    try {
      call();
    } catch (const ConfigError& found) {
      return std::string(found.what());
    }
    return std::string();
  };
  EXPECT_THAT(error([&] { entry.number("size", 2); }),
              HasSubstr("t.yaml:2: size is not allowed (got 3) (allowed: above 0, at most 2)"));
  EXPECT_THAT(error([&] {
                entry.one_of("name", {"B", "C"});
              }),
              HasSubstr("t.yaml:1: name is not allowed (got A) (allowed: B, C)"));
  EXPECT_THAT(error([&] { entry.text("other"); }), HasSubstr("lacks other"));
  EXPECT_THAT(error([&] { entry.items("name"); }), HasSubstr("t.yaml:1: name is no list"));
  EXPECT_THAT(error([&] { YamlEntry(value, "t.yaml", {"name"}); }), HasSubstr("t.yaml:2: has an unknown key size"));
}

}  // namespace
}  // namespace sdtune
