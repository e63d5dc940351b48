#include "train/optim/weight_average.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace sdtune::train {
namespace {

TEST(AveragedWeights, PutBackWhatTheyHaveTakenWhereTheRestFails) {
  const torch::Tensor first = torch::ones({3}), second = torch::ones({2});
  const std::vector<TrainedParameter> parameters = {{"first", first, torch::zeros_like(first), {}, 0},
                                                    {"second", second, torch::zeros_like(second), {}, 0}};
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(parameters, OptimOptions());
  const WeightAverage average(*optimizer, 0.5);
  first.fill_(2);
  {
    const AveragedWeights averaged(parameters, average);
    EXPECT_TRUE(first.equal(torch::ones({3})));
  }
  EXPECT_TRUE(first.equal(torch::full({3}, 2.0)));
  const std::vector<TrainedParameter> without_second = {parameters.front()};
  EXPECT_THROW(AveragedWeights(without_second, average), std::out_of_range);
  EXPECT_TRUE(first.equal(torch::full({3}, 2.0)));
}

}  // namespace
}  // namespace sdtune::train
