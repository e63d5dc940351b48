#include "model/options/option_group.h"

#include <gtest/gtest.h>

#include "model/base/error.h"

namespace sdtune {
namespace {

struct GroupedOptions {
  std::int64_t steps = 4;
  double rate = 1;
  std::string stage = "all";
  std::vector<std::string> concepts;

  FieldList fields() {
    FieldList list;
    OptionGroup group(list, "Run");
    group.add("steps", &steps, "Steps.").aliases({"num_steps"}).unit("steps").range(1, 9).placeholder("COUNT");
    group.add("rate", &rate, "Rate.").above(0).at_most(2);
    group.add("stage", &stage, "Stage.").choices({"all", "classifier"}).old_choice("judge", "classifier");
    OptionGroup(list, "Data").add("concepts", &concepts, "Subjects.").takes_mappings().not_in_metadata();
    return list;
  }
};

TEST(OptionGroup, GivesEachOptionItsDetailsAndHeading) {
  GroupedOptions options;
  const FieldList fields = options.fields();
  ASSERT_EQ(fields.size(), 4u);
  EXPECT_EQ(fields[0].info.group, "Run");
  EXPECT_EQ(fields[0].info.unit, "steps");
  EXPECT_EQ(fields[0].info.placeholder, "COUNT");
  EXPECT_EQ(field_range(fields[0]), "1 <= x <= 9");
  EXPECT_EQ(find_field(fields, "num-steps"), &fields[0]);
  EXPECT_EQ(field_range(fields[1]), "0 < x <= 2");
  EXPECT_EQ(fields[3].info.group, "Data");
  EXPECT_TRUE(fields[3].info.takes_mappings);
  EXPECT_FALSE(fields[3].info.in_metadata);
  EXPECT_TRUE(fields[0].info.in_metadata);
  EXPECT_FALSE(fields[0].info.resume) << "no option of training";
  set_field(fields[0], "7", "--steps");
  EXPECT_EQ(options.steps, 7);
}

TEST(OptionGroup, ReadsAnOldChoiceAsTheNewOne) {
  GroupedOptions options;
  const FieldList fields = options.fields();
  set_field(fields[2], "judge", "--stage");
  EXPECT_EQ(options.stage, "classifier");
  EXPECT_EQ(field_range(fields[2]), "one of all, classifier");
  EXPECT_THROW(set_field(fields[2], "jury", "--stage"), ConfigError);
}

}  // namespace
}  // namespace sdtune
