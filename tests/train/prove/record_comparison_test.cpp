#include "train/prove/record_comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "train/prove/step_record.h"

namespace sdtune::train {
namespace {

TEST(Sampled, TakesNumbersOfTheWholeTensorInTheOrderOfItsShape) {
  const torch::Tensor large = torch::arange(2 * 3 * 40 * 50, torch::kFloat32).view({2, 3, 40, 50});
  const torch::Tensor sample = sampled(large);
  EXPECT_EQ(sample.numel(), 2048);
  EXPECT_EQ(sample[0].item<double>(), 0);
  EXPECT_GT(sample[-1].item<double>(), 11990);
  EXPECT_TRUE(sampled(large.contiguous(torch::MemoryFormat::ChannelsLast)).equal(sample));
  EXPECT_TRUE(sampled(torch::tensor({3.F, 1.F})).equal(torch::tensor({3.0, 1.0}, torch::kFloat64)));
}

// A record with these losses and one gradient.
StepRecord record_of(std::vector<double> losses, const torch::Tensor& gradient) {
  StepRecord record;
  const torch::Tensor list = torch::tensor(losses, torch::kFloat32);
  record.tensors = {{"losses", list}, {"norms", list}, {"gradient.a", gradient}, {"change.a", gradient}};
  return record;
}

bool all_pass(const std::vector<Check>& checks) {
  return std::all_of(checks.begin(), checks.end(), [](const Check& check) { return check.passed(); });
}

TEST(CompareRecords, FindsWhatIsWrongInEachFormat) {
  const torch::Tensor gradient = torch::linspace(-1, 1, 100);
  const StepRecord reference = record_of({0.5, 0.4}, gradient);
  for (const char* dtype : {"float32", "bfloat16", "float16"}) {
    EXPECT_TRUE(all_pass(compare_records(reference, reference, dtype)));
    EXPECT_FALSE(all_pass(compare_records(record_of({0.5, 0.44}, gradient), reference, dtype)));
    EXPECT_FALSE(all_pass(compare_records(record_of({0.5, 0.4}, gradient * 1.5), reference, dtype)));
    EXPECT_FALSE(all_pass(compare_records(record_of({0.5}, gradient), reference, dtype))) << "a step is missing";
    EXPECT_FALSE(all_pass(compare_records(record_of({0.5, NAN}, gradient), reference, dtype)));
  }
  EXPECT_TRUE(all_pass(compare_records(record_of({0.5, 0.4}, gradient * 1.01), reference, "bfloat16")));
  EXPECT_FALSE(all_pass(compare_records(record_of({0.5, 0.4}, gradient * 1.01), reference, "float32")));
}

}  // namespace
}  // namespace sdtune::train
