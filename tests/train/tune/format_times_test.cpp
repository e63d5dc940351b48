#include "train/tune/implementation_times.h"

#include <gtest/gtest.h>

#include "train/tune/format_times.h"

namespace sdtune::train {
namespace {

TEST(FastestFormat, TakesAnotherThanFloat32OnlyForAGain) {
  const std::vector<FormatTimes> times = {{"float32", 1.0, 1.0}, {"bfloat16", 0.94, 0.96}};
  EXPECT_EQ(fastest_format(times, &FormatTimes::image_seconds, 0.05), "bfloat16");
  EXPECT_EQ(fastest_format(times, &FormatTimes::step_seconds, 0.05), "float32");
  EXPECT_EQ(fastest_format(times, &FormatTimes::step_seconds, 0), "bfloat16");
  EXPECT_THROW(fastest_format({{"bfloat16", 1, 1}}, &FormatTimes::step_seconds, 0), std::logic_error);
}

// What computes the same differs in its times by noise, and was taken now and then.
TEST(TunedChoices, OfBfloat16AreTimedOnlyWhereItIsOneOfTheFormats) {
  for (const model::CpuChoice& choice : model::kCpuChoices) {
    const bool is_of_bfloat16 = std::string(choice.name).find("bfloat16") != std::string::npos;
    EXPECT_EQ(is_of_no_format(choice, {"float32", "float32"}), is_of_bfloat16) << choice.name;
    EXPECT_FALSE(is_of_no_format(choice, {"bfloat16", "float32"})) << choice.name;
    EXPECT_FALSE(is_of_no_format(choice, {"float32", "bfloat16"})) << choice.name;
  }
}

TEST(FasterImplementation, GainsOverBothUsesTogether) {
  EXPECT_TRUE(is_faster(0.9, 1.0, 0.05));
  EXPECT_FALSE(is_faster(0.92, 1.0, 0.05));
  EXPECT_TRUE(is_faster(1.1, 0.8, 0.05));
  EXPECT_FALSE(is_faster(0.8, 1.25, 0));
}

}  // namespace
}  // namespace sdtune::train
