#include "train/plan/sizes_only.h"

#include <gtest/gtest.h>
#include <torch/nn/functional/conv.h>

#include <functional>
#include <string>
#include <vector>

#include "model/files/install_paths.h"
#include "model/kernels/geglu.h"
#include "model/kernels/group_norm.h"
#include "model/kernels/matrix_product.h"
#include "model/nn/attention.h"
#include "model/pipeline/bundle_configs.h"
#include "model/pipeline/empty_bundle.h"
#include "train/plan/model_trace.h"

namespace sdtune::train {
namespace {

using Tensors = std::vector<torch::Tensor>;

void expect_alike(const Tensors& found, const Tensors& expected, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].sizes(), expected[i].sizes()) << what << " " << i;
    EXPECT_EQ(found[i].strides(), expected[i].strides()) << what << " " << i;
    EXPECT_EQ(found[i].scalar_type(), expected[i].scalar_type()) << what << " " << i;
  }
}

// The result, and the gradients of all that went in.
using Operation = std::function<torch::Tensor(const Tensors&)>;

Tensors both_directions(const Operation& operation, const Tensors& inputs) {
  Tensors leaves;
  for (const torch::Tensor& input : inputs) leaves.push_back(input.detach().set_requires_grad(true));
  Tensors out = {operation(leaves)};
  out[0].sum().backward();
  for (const torch::Tensor& leaf : leaves) out.push_back(leaf.grad());
  return out;
}

Tensors sizes_of(const Operation& operation, const Tensors& inputs) {
  const SizesOnlyScope scope;
  return both_directions(operation, inputs);
}

TEST(SizesOnly, GivesTheLayoutsOfWhatIsComputed) {
  const torch::Tensor map = torch::rand({2, 32, 32, 40}), kernel = torch::rand({64, 32, 3, 3});
  const auto last = [](const torch::Tensor& x) { return x.contiguous(torch::MemoryFormat::ChannelsLast); };
  const torch::Tensor query = torch::rand({2, 4, 96, 16}), key = torch::rand({2, 4, 77, 16});
  const torch::Tensor rows = torch::rand({2, 96, 128});
  const Operation convolve = [](const Tensors& x) {
    return torch::conv2d(x[0], x[1], x[2], /*stride=*/2, /*padding=*/1);
  };
  const Operation attend = [](const Tensors& x) { return torch::scaled_dot_product_attention(x[0], x[1], x[2]); };
  const std::vector<std::pair<Operation, Tensors>> operations = {
      {[](const Tensors& x) { return x[0].mm(x[1]); }, {torch::rand({70, 80}), torch::rand({80, 90})}},
      {[](const Tensors& x) { return torch::addmm(x[0], x[1], x[2]); },
       {torch::rand({90}), torch::rand({70, 80}), torch::rand({80, 90})}},
      {[](const Tensors& x) { return x[0].bmm(x[1]); }, {torch::rand({3, 70, 80}), torch::rand({3, 80, 90})}},
      {[](const Tensors& x) { return torch::baddbmm(x[0], x[1], x[2]); },
       {torch::rand({3, 70, 90}), torch::rand({3, 70, 80}), torch::rand({3, 80, 90})}},
      {[](const Tensors& x) { return model::apply_linear(x[0], x[1], x[2]); },
       {rows, torch::rand({256, 128}), torch::rand({256})}},
      {convolve, {map, kernel, torch::rand({64})}},
      {convolve, {last(map), last(kernel), torch::rand({64})}},
      {convolve, {last(map), kernel, torch::rand({64})}},
      {attend, {query, key, torch::rand({2, 4, 77, 16})}},
      {attend, {query.transpose(1, 2).contiguous().transpose(1, 2), key, torch::rand({2, 4, 77, 16})}},
      {[](const Tensors& x) { return model::geglu(x[0]); }, {rows}},
      {[](const Tensors& x) { return x[0] + x[1]; }, {last(map), last(map)}},
  };
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const auto& [operation, inputs] = operations[i];
    expect_alike(sizes_of(operation, inputs), both_directions(operation, inputs), "operation " + std::to_string(i));
  }
}

TEST(SizesOnly, ComputesWhatIsReadAsValueAndEverythingAfterwards) {
  const torch::Tensor ids = torch::arange(77), left = torch::ones({200, 200});
  {
    const SizesOnlyScope scope;
    EXPECT_EQ(ids.clone().sum().item<int64_t>(), 76 * 77 / 2);
    EXPECT_EQ((torch::ones({8}) + 1).sum().item<float>(), 16.0F);
  }
  EXPECT_EQ(left.mm(left).sum().item<float>(), 200.0F * 200 * 200);
  EXPECT_EQ((left + left).sum().item<float>(), 2.0F * 200 * 200);
}

TEST(SizesOnly, LeavesLargeCopiesOut) {
  torch::Tensor large = torch::full({200, 200}, 7.0F);
  const SizesOnlyScope scope;
  large.copy_(torch::zeros({200, 200}));
  EXPECT_EQ(large.sum().item<float>(), 7.0F * 200 * 200);  // not copied
}

// What is kept and counted is the same to the byte; what is used meanwhile is less by what the CPU's kernels take for
// themselves.
TEST(SizesOnly, TracesATrainingLikeOneThatComputes) {
  for (const char* precision : {"no", "bf16"}) {
    for (const bool recomputed : {false, true}) {
      TrainConfig config;
      config.run.base = find_shared_file("models/portrait-64").string();
      config.run.train_text_encoder = true;
      config.precision.mixed_precision = precision;
      config.data.resolution = 64;
      ModelTrace trace(config, model::empty_bundle(model::BundleConfigs::read(config.run.base), {}));
      const auto run = [&] {
        return trace_pass([&](const MarkPiece& mark) {
          trace.run_training({2, 16, 16}, recomputed, mark);
          for (const ModuleParameter& parameter : trace.trained()) parameter.weight.mutable_grad() = torch::Tensor();
        });
      };
      const PassCost computed = run();
      const SizesOnlyScope scope;
      const PassCost sizes = run();
      const std::string what = std::string(precision) + (recomputed ? ", recomputed" : "");
      ASSERT_EQ(sizes.pieces.size(), computed.pieces.size()) << what;
      for (std::size_t i = 0; i < sizes.pieces.size(); ++i) {
        EXPECT_EQ(sizes.pieces[i].end_bytes, computed.pieces[i].end_bytes) << what << ", " << sizes.pieces[i].name;
      }
      EXPECT_EQ(sizes.flops, computed.flops) << what;
      EXPECT_EQ(sizes.attention_flops, computed.attention_flops) << what;
      EXPECT_EQ(sizes.text_flops, computed.text_flops) << what;
      EXPECT_GT(sizes.text_flops, 0) << what;
      EXPECT_LE(sizes.peak_bytes(), computed.peak_bytes()) << what;
      EXPECT_GE(sizes.peak_bytes(), computed.peak_bytes() / 10 * 8) << what;
    }
  }
}

}  // namespace
}  // namespace sdtune::train
