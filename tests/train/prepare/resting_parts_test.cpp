#include "train/prepare/resting_parts.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

namespace sdtune::train {
namespace {

// That they come to a GPU and leave it without a wait is a test of tests/python/test_operator_trace.py.
TEST(RestingParts, KeepTheirWeightsInOnePlaceOnTheHost) {
  torch::nn::Linear part(3, 2);
  const torch::Tensor values = part->weight.detach().clone();
  RestingParts resting({part.ptr()}, torch::kCPU);
  const void* memory = part->weight.const_data_ptr();
  {
    const RestingParts::OnDevice outer(&resting);
    { const RestingParts::OnDevice inner(&resting); }
    EXPECT_TRUE(part->weight.equal(values));
    part->to(torch::kFloat64);  // as an autoencoder that asks for float32 while it is used
  }
  EXPECT_TRUE(part->weight.equal(values));
  EXPECT_EQ(part->weight.const_data_ptr(), memory);  // nothing is copied back
  const RestingParts::OnDevice nothing(nullptr);
}

// A GPU that is not there stands for one without memory: this program has loaded no library of CUDA.
TEST(RestingParts, StayOnTheHostWhereTheyCannotMove) {
  torch::nn::Linear part(3, 2);
  const torch::Tensor values = part->weight.detach().clone();
  RestingParts resting({part.ptr()}, torch::Device(torch::kCUDA, 0));
  const void* memory = part->weight.const_data_ptr();
  for (int attempt = 0; attempt < 2; ++attempt) {  // the first one is no user of theirs
    EXPECT_THROW(RestingParts::OnDevice{&resting}, c10::Error) << attempt;
    EXPECT_TRUE(part->weight.equal(values));
    EXPECT_EQ(part->weight.const_data_ptr(), memory);
  }
}

}  // namespace
}  // namespace sdtune::train
