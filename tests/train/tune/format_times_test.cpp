#include "train/tune/format_times.h"

#include <gtest/gtest.h>

namespace sdtune::train {
namespace {

TEST(FastestFormat, TakesAnotherThanFloat32OnlyForAGain) {
  const std::vector<FormatTimes> times = {{"float32", 1.0, 1.0}, {"bfloat16", 0.94, 0.96}};
  EXPECT_EQ(fastest_format(times, &FormatTimes::image_seconds, 0.05), "bfloat16");
  EXPECT_EQ(fastest_format(times, &FormatTimes::step_seconds, 0.05), "float32");
  EXPECT_EQ(fastest_format(times, &FormatTimes::step_seconds, 0), "bfloat16");
  EXPECT_THROW(fastest_format({{"bfloat16", 1, 1}}, &FormatTimes::step_seconds, 0), std::logic_error);
}

}  // namespace
}  // namespace sdtune::train
