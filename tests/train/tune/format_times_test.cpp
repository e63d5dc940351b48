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

TEST(FasterImplementation, GainsOverBothUsesTogether) {
  EXPECT_TRUE(is_faster(0.9, 1.0, 0.05));
  EXPECT_FALSE(is_faster(0.92, 1.0, 0.05));
  EXPECT_TRUE(is_faster(1.1, 0.8, 0.05));
  EXPECT_FALSE(is_faster(0.8, 1.25, 0));
}

}  // namespace
}  // namespace sdtune::train
