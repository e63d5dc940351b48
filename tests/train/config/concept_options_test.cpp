#include "train/config/concept_options.h"

#include <gtest/gtest.h>

namespace sdtune::train {
namespace {

TEST(Concepts, TheOptionsThemselvesAreTheOnlySubject) {
  DataOptions options;
  options.images = "me";
  options.repeats = 3;
  std::vector<Problem> problems;
  const std::vector<ConceptOptions> concepts = concepts_of(options, problems);
  ASSERT_EQ(concepts.size(), 1u);
  EXPECT_EQ(concepts[0].images, "me");
  EXPECT_EQ(concepts[0].instance_prompt, "a photo of sks person");
  EXPECT_EQ(concepts[0].repeats, 3);
  EXPECT_TRUE(problems.empty());
}

TEST(Concepts, EntriesTakeTheRestFromTheOptions) {
  DataOptions options;
  options.class_prompt = "a photo of a man";
  options.concepts = {
      R"({"instance_data_dir": "a", "instance_prompt": "a photo of sks man", "repeats": 2})",
      R"({"images": "b", "num_class_images": "7", "class_prompt": null, "class_data_dir": null, "repeats": null})"};
  std::vector<Problem> problems;
  const std::vector<ConceptOptions> concepts = concepts_of(options, problems);
  ASSERT_EQ(concepts.size(), 2u);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(concepts[0].images, "a");
  EXPECT_EQ(concepts[0].instance_prompt, "a photo of sks man");
  EXPECT_EQ(concepts[0].class_prompt, "a photo of a man");
  EXPECT_EQ(concepts[0].repeats, 2);
  EXPECT_EQ(concepts[1].num_class_images, 7);
  EXPECT_EQ(concepts[1].class_prompt, "a photo of a man");
  EXPECT_EQ(concepts[1].class_data_dir, "");
}

TEST(Concepts, EveryFaultIsNamedByEntryAndKey) {
  DataOptions options;
  options.concepts = {R"({"images": "a", "repeats": 0, "class_promt": "x"})", "me", R"({"instance_prompt": "p"})",
                      R"({"images": ["a"]})"};
  std::vector<Problem> problems;
  concepts_of(options, problems);
  ASSERT_EQ(problems.size(), 6u);
  EXPECT_EQ(problems[0].where, "concepts[1].repeats");
  EXPECT_NE(problems[0].what.find("got 0; allowed: 1 <= x <= 10000"), std::string::npos) << problems[0].line();
  EXPECT_EQ(problems[1].hint, "did you mean class_prompt?");
  EXPECT_EQ(problems[2].where, "concepts[2]");
  EXPECT_EQ(problems[3].where, "concepts[3].images");
  EXPECT_EQ(problems[4].where, "concepts[4].images");
  EXPECT_THROW(concepts_of(options), ConfigError);
}

TEST(Concepts, AnOptionByTwoNamesIsRefused) {
  DataOptions options;
  options.concepts = {R"({"images": "a", "instance_data_dir": "b"})"};
  std::vector<Problem> problems;
  concepts_of(options, problems);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].where, "concepts[1].instance_data_dir");
  EXPECT_EQ(problems[0].what, "is the same option as images");
  problems.clear();
  options.concepts = {R"({"images": null, "instance_data_dir": "b"})"};
  EXPECT_EQ(concepts_of(options, problems).at(0).images, "b");
  EXPECT_TRUE(problems.empty());
}

}  // namespace
}  // namespace sdtune::train
