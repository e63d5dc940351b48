#include "train/data/tensor_blocks.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <vector>

namespace sdtune::train {
namespace {

TEST(TensorBlocks, CopiesKeepValuesStridesAndTypeAndDoNotTouchEachOther) {
  TensorBlocks blocks;
  std::vector<torch::Tensor> originals, copies;
  for (std::int64_t i = 0; i < 300; ++i) {  // more than one block holds, of changing sizes and types
    const auto dtype = i % 50 == 0 ? torch::kInt32 : torch::kFloat32;
    torch::Tensor tensor = at::randn({1 + i % 2, 4, 31, 17}).mul(100).to(dtype);
    if (i % 3 == 0) tensor = tensor.contiguous(torch::MemoryFormat::ChannelsLast);
    originals.push_back(tensor);
    copies.push_back(blocks.copy(tensor));
  }
  for (std::size_t i = 0; i < originals.size(); ++i) {
    EXPECT_EQ(copies[i].strides(), originals[i].strides());
    EXPECT_EQ(copies[i].scalar_type(), originals[i].scalar_type());
    EXPECT_TRUE(at::equal(copies[i], originals[i])) << i;
    EXPECT_FALSE(copies[i].is_alias_of(originals[i]));
  }
  EXPECT_TRUE(copies[2].is_alias_of(copies[1])) << "small ones lie in one block";
}

TEST(TensorBlocks, LargeOnesHaveMemoryOfTheirOwn) {
  TensorBlocks blocks;
  const torch::Tensor first = blocks.copy(at::ones({8})), large = blocks.copy(at::ones({65 << 10}));
  EXPECT_FALSE(large.is_alias_of(first));
  EXPECT_EQ(large.storage().nbytes(), large.nbytes());
  EXPECT_TRUE(blocks.copy(at::ones({64 << 10})).is_alias_of(first)) << "256 KiB are small";
}

TEST(TensorBlocks, TakesNoMoreOfAViewThanItShows) {
  TensorBlocks blocks;
  const torch::Tensor wide = at::randn({1, 8, 4, 4}, torch::requires_grad());
  const torch::Tensor copy = blocks.copy(wide.narrow(1, 0, 4));
  EXPECT_TRUE(at::equal(copy, wide.narrow(1, 0, 4)));
  EXPECT_FALSE(copy.requires_grad());
  const torch::Tensor gaps = at::randn({2, 8, 4, 4}).narrow(1, 0, 4);
  EXPECT_FALSE(gaps.is_contiguous());
  EXPECT_TRUE(blocks.copy(gaps).is_contiguous());
  EXPECT_TRUE(at::equal(blocks.copy(gaps), gaps));
}

}  // namespace
}  // namespace sdtune::train
