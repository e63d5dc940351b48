#include "model/pipeline/guidance.h"

#include <gtest/gtest.h>
#include <torch/types.h>

namespace sdtune::model {
namespace {

TEST(Guidance, MovesFromUnconditionalThroughConditional) {
  const torch::Tensor both = torch::tensor({{1.0f, 2.0f}, {3.0f, 6.0f}});
  EXPECT_TRUE(torch::equal(guided_prediction(both, 1.0, 0.0), both.slice(0, 1)));
  EXPECT_TRUE(torch::equal(guided_prediction(both, 2.5, 0.0), torch::tensor({{6.0f, 12.0f}})));
}

TEST(Guidance, FullRescaleHasTheConditionalDeviationPerSample) {
  const torch::Tensor both = torch::linspace(-2, 3, 48).cos().view({4, 3, 2, 2});
  const torch::Tensor guided = guided_prediction(both, 7.5, 1.0);
  for (std::int64_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(guided[i].std().item<double>(), both[2 + i].std().item<double>(), 1e-5);
  }
}

}  // namespace
}  // namespace sdtune::model
