#include "model/generate/generate_options.h"

#include <gtest/gtest.h>

#include <set>

#include "model/generate/sampler_names.h"

namespace sdtune::model {
namespace {

TEST(GenerateOptions, EachNameOnceAndACallsOptionsFirst) {
  GenerateOptions options;
  const FieldList call = options.call_fields(), all = options.fields();
  std::set<std::string> names;
  for (const Field& field : all) EXPECT_TRUE(names.insert(python_keyword(field.info)).second) << field.info.name;
  for (std::size_t i = 0; i < call.size(); ++i) EXPECT_EQ(call[i].info.name, all[i].info.name);
}

TEST(GenerateOptions, AreCalledAsInDiffusers) {
  GenerateOptions options;
  const FieldList fields = options.fields();
  EXPECT_EQ(python_keyword(find_field(fields, "steps")->info), "num_inference_steps");
  EXPECT_EQ(python_keyword(find_field(fields, "num_images")->info), "num_images_per_prompt");
  EXPECT_EQ(python_keyword(find_field(fields, "guidance_scale")->info), "guidance_scale");
}

TEST(GenerateOptions, WriteIntoPointersOfTheStruct) {
  GenerateOptions options;
  const FieldList fields = options.fields();
  set_field(*find_field(fields, "num_inference_steps"), "12", "steps");
  set_field(*find_field(fields, "guidance_scale"), "none", "guidance_scale");
  EXPECT_EQ(options.steps, 12);
  EXPECT_FALSE(options.guidance_scale);
  EXPECT_EQ(default_guidance_scale(false), 7.5);
  EXPECT_EQ(default_guidance_scale(true), 5.0);
}

}  // namespace
}  // namespace sdtune::model
