#include "model/nn/attention.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "model/core/cpu_implementation.h"
#include "model/kernels/attention.h"

namespace sdtune::model {
namespace {

// Two attentions of equal weights, of which one asks to be computed in float32.
struct Pair {
  Attention asks, plain;

  explicit Pair(torch::Dtype dtype) : asks(options(true)), plain(options(false)) {
    const torch::NoGradGuard no_grad;
    torch::manual_seed(0);
    for (std::size_t i = 0; i < asks->parameters().size(); ++i) {
      asks->parameters()[i].normal_();
      plain->parameters()[i].copy_(asks->parameters()[i]);
    }
    asks->to(dtype);
    plain->to(dtype);
  }

  static AttentionOptions options(bool upcast) {
    AttentionOptions options;
    options.query_dim = options.context_dim = 16;
    options.heads = 2;
    options.head_dim = 8;
    options.upcast = upcast;
    return options;
  }

  bool agree(torch::Dtype dtype) {
    const torch::NoGradGuard no_grad;
    torch::manual_seed(1);
    const torch::Tensor x = torch::randn({2, 24, 16}).to(dtype);
    return torch::equal(asks->forward(x, torch::Tensor(), nullptr), plain->forward(x, torch::Tensor(), nullptr));
  }
};

// As diffusers' AttnProcessor2_0, which does not look at upcast_attention.
TEST(Attention, ComputesBfloat16InBfloat16WhereFloat32IsAskedFor) {
  EXPECT_TRUE(Pair(torch::kBFloat16).agree(torch::kBFloat16));
  EXPECT_TRUE(Pair(torch::kFloat32).agree(torch::kFloat32));
}

// float16 overflows in Stable Diffusion 2.1, which therefore asks.
TEST(Attention, ComputesFloat16InFloat32WhereItIsAskedFor) {
  EXPECT_FALSE(Pair(torch::kFloat16).agree(torch::kFloat16));
}

// 36 and 52 numbers a head, as portrait-128 has them.
TEST(Attention, HeadsOfFourAreAChoice) {
  if (!vectors_of_this_cpu()) GTEST_SKIP() << "a CPU without AVX2 has one way";
  torch::manual_seed(0);
  for (const int64_t head : {36, 52, 40}) {
    const torch::Tensor q = torch::randn({2, 64, 4, head}), k = torch::randn({2, 77, 4, head}),
                        v = torch::randn({2, 77, 4, head}), tiled = tiled_attention(q, k, v, /*causal=*/false);
    for (const bool is_chosen : {true, false}) {
      CpuImplementation implementation;
      implementation.heads_of_four = is_chosen;
      const CpuImplementationScope scope(implementation);
      EXPECT_EQ(torch::equal(attend(q, k, v, /*causal=*/false, /*upcast=*/false), tiled), is_chosen || head == 40);
    }
  }
}

TEST(Attention, CausalTilesAreAChoice) {
  if (!vectors_of_this_cpu()) GTEST_SKIP() << "a CPU without AVX2 has one way";
  torch::manual_seed(0);
  const torch::Tensor q = torch::randn({2, 77, 4, 32}), k = torch::randn({2, 77, 4, 32}),
                      v = torch::randn({2, 77, 4, 32}), tiled = tiled_attention(q, k, v, /*causal=*/true);
  for (const bool is_chosen : {true, false}) {
    CpuImplementation implementation;
    implementation.causal_tiles = is_chosen;
    const CpuImplementationScope scope(implementation);
    EXPECT_EQ(torch::equal(attend(q, k, v, /*causal=*/true, /*upcast=*/false), tiled), is_chosen);
  }
}

}  // namespace
}  // namespace sdtune::model
