#include "train/parameters/starting_values.h"

#include <gtest/gtest.h>

#include "model/files/install_paths.h"

namespace sdtune::train {
namespace {

// How a GPU run begins: the modules are in half precision, and masters still start from what the files hold.
TEST(StartingValues, OfHalfPrecisionModulesAreThoseOfTheFiles) {
  const model::ModelBundle exact = model::load_bundle(find_bundled_base(), torch::kFloat32, torch::kCPU);
  const model::ModelBundle half = model::load_bundle(find_bundled_base(), torch::kBFloat16, torch::kCPU);
  for (const bool text : {false, true}) {
    const std::vector<ModuleParameter> expected = trainable_parameters(exact, text);
    const std::vector<ModuleParameter> trained = trainable_parameters(half, text);
    const std::vector<torch::Tensor> values = starting_values(half, trained);
    ASSERT_EQ(values.size(), expected.size());
    std::int64_t rounded = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_TRUE(torch::equal(values[i], expected[i].weight)) << expected[i].name;
      rounded += torch::equal(trained[i].weight.to(torch::kFloat32), expected[i].weight) ? 0 : 1;
    }
    EXPECT_GT(rounded, 0);  // bfloat16 does lose digits of this base
  }
}

TEST(StartingValues, OfFloat32ModulesAreTheirOwn) {
  const model::ModelBundle bundle = model::load_bundle(find_bundled_base(), torch::kFloat32, torch::kCPU);
  const std::vector<ModuleParameter> trained = trainable_parameters(bundle, true);
  const std::vector<torch::Tensor> values = starting_values(bundle, trained);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i].data_ptr(), trained[i].weight.data_ptr());
}

}  // namespace
}  // namespace sdtune::train
