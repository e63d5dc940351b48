#include "train/dist/gradient_buckets.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "model/core/chunk_threads.h"

namespace sdtune::train {
namespace {

// Two ranks of which the other one always has the same gradients; it notes when it was called.
class MirrorGroup final : public ProcessGroup {
 public:
  std::int64_t rank() const override { return 0; }
  std::int64_t world_size() const override { return 2; }
  std::unique_ptr<PendingReduce> start_all_reduce_sum(torch::Tensor tensor) override {
    count_reduction(static_cast<std::int64_t>(tensor.nbytes()));
    tensor.mul_(2);
    return std::make_unique<Done>();
  }
  void broadcast(torch::Tensor, std::int64_t) override {}
  void barrier() override {}
  std::vector<std::string> gather_text(const std::string& text) override { return {text, text}; }

 private:
  struct Done final : PendingReduce {
    void wait() override {}
  };
};

torch::Tensor leaf(std::initializer_list<std::int64_t> shape) {
  return torch::randn(shape).requires_grad_(true);
}

struct Net {
  torch::Tensor first = leaf({4, 6}), second = leaf({4, 4}), unused = leaf({3});
  std::vector<NamedParameter> parameters() const { return {{"first", first}, {"second", second}, {"unused", unused}}; }
  torch::Tensor loss(const torch::Tensor& x) const { return (second.mm(first.mm(x)).tanh()).pow(2).sum(); }
};

void run_step(GradientBuckets& buckets, const Net& net, const std::vector<torch::Tensor>& batches) {
  buckets.begin_step(static_cast<std::int64_t>(batches.size()));
  for (const torch::Tensor& batch : batches) {
    buckets.begin_round();
    net.loss(batch).backward();
  }
  buckets.finish_step();
}

std::vector<torch::Tensor> expected(const Net& net, const std::vector<torch::Tensor>& batches) {
  torch::Tensor total = torch::zeros({});
  for (const torch::Tensor& batch : batches) total = total + net.loss(batch);
  return torch::autograd::grad({total}, {net.first, net.second});
}

TEST(GradientBuckets, SumTheMicroBatchesOfAStepAndForgetTheStepBefore) {
  const Net net;
  SingleProcess alone;
  GradientBuckets buckets(net.parameters(), alone, {});
  for (int step = 0; step < 3; ++step) {
    const std::vector<torch::Tensor> batches{torch::randn({6, 5}), torch::randn({6, 5}), torch::randn({6, 5})};
    const std::vector<torch::Tensor> want = expected(net, batches);
    run_step(buckets, net, batches);
    EXPECT_TRUE(torch::allclose(buckets.gradient(0), want[0], 1e-5, 1e-6));
    EXPECT_TRUE(torch::allclose(buckets.gradient(1), want[1], 1e-5, 1e-6));
    EXPECT_TRUE(buckets.gradient(2).eq(0).all().item<bool>());
    EXPECT_FALSE(net.first.grad().defined());  // autograd keeps no second copy
  }
  EXPECT_EQ(alone.reduced_bytes(), 0);
}

TEST(GradientBuckets, SendOnceAStepAndNothingInInnerRounds) {
  const Net net;
  MirrorGroup group;
  GradientBuckets buckets(net.parameters(), group, {.bucket_bytes = 1});
  EXPECT_EQ(buckets.bucket_count(), 3u);
  const std::vector<torch::Tensor> batches{torch::randn({6, 5}), torch::randn({6, 5})};
  for (int step = 0; step < 3; ++step) {
    const std::vector<torch::Tensor> want = expected(net, batches);
    const std::int64_t before = group.reductions();
    buckets.begin_step(2);
    buckets.begin_round();
    net.loss(batches[0]).backward();
    EXPECT_EQ(group.reductions(), before) << "traffic in an inner round";
    buckets.begin_round();
    net.loss(batches[1]).backward();
    EXPECT_EQ(group.reductions() - before, step == 0 ? 0 : 3) << "not sent during backward";
    buckets.finish_step();
    EXPECT_EQ(group.reductions() - before, 3);
    EXPECT_TRUE(torch::allclose(buckets.gradient(0), want[0] * 2, 1e-5, 1e-6));
    EXPECT_TRUE(torch::allclose(buckets.gradient(1), want[1] * 2, 1e-5, 1e-6));
  }
}

TEST(GradientBuckets, AParameterThatNeverComesHoldsNothingUp) {
  const Net net;
  MirrorGroup group;
  GradientBuckets buckets(net.parameters(), group, {});
  EXPECT_EQ(buckets.bucket_count(), 1u);
  const std::vector<torch::Tensor> batches{torch::randn({6, 5})};
  run_step(buckets, net, batches);
  buckets.begin_step(1);
  buckets.begin_round();
  net.loss(batches[0]).backward();
  EXPECT_EQ(group.reductions(), 2) << "the second step's bucket waited for the parameter that never comes";
  buckets.finish_step();
  EXPECT_TRUE(buckets.gradient(2).eq(0).all().item<bool>());
}

TEST(GradientBuckets, KeepStridesAndWidenHalfPrecision) {
  torch::Tensor weight = torch::randn({8, 4, 3, 3}).to(torch::kBFloat16).contiguous(torch::MemoryFormat::ChannelsLast);
  weight.requires_grad_(true);
  SingleProcess alone;
  GradientBuckets buckets({{"weight", weight}}, alone, {.float32_gradients = true});
  EXPECT_EQ(buckets.gradient(0).scalar_type(), torch::kFloat32);
  EXPECT_EQ(buckets.gradient(0).strides(), weight.strides());
  buckets.begin_step(300);
  for (int round = 0; round < 300; ++round) {
    buckets.begin_round();
    weight.sum().backward();
  }
  buckets.finish_step();
  EXPECT_TRUE(buckets.gradient(0).eq(300).all().item<bool>());  // bfloat16 would stop at 256
}

// A part whose backward runs a second graph, as activation recomputation does: the hook fires inside, once a use.
struct Nested : torch::autograd::Function<Nested> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, torch::Tensor x, torch::Tensor weight) {
    context->save_for_backward({x});
    context->saved_data["weight"] = weight;
    return weight.detach().mm(x.detach());
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    const torch::AutoGradMode on(true);
    torch::Tensor x = context->get_saved_variables()[0].detach().requires_grad_(true);
    torch::Tensor weight = context->saved_data["weight"].toTensor();
    weight.mm(x).backward(grads[0]);
    return {x.grad(), torch::Tensor()};
  }
};

TEST(GradientBuckets, CountTheCallsOfAParameterThatRecomputedPartsShare) {
  const torch::Tensor shared = leaf({4, 4});
  MirrorGroup group;
  GradientBuckets buckets({{"shared", shared}}, group, {});
  for (int step = 0; step < 3; ++step) {
    torch::Tensor x = torch::randn({4, 4}).requires_grad_(true);
    const torch::Tensor want = torch::autograd::grad({shared.mm(shared.mm(x)).sum()}, {shared})[0];
    buckets.begin_step(1);
    buckets.begin_round();
    Nested::apply(Nested::apply(x, shared), shared).sum().backward();
    EXPECT_EQ(group.reductions(), step == 0 ? 0 : step + 1);
    buckets.finish_step();
    EXPECT_TRUE(torch::allclose(buckets.gradient(0), want * 2, 1e-5, 1e-5));
  }
  // Used once more than it was known to be: a sum that was already sent must not silently miss a part.
  buckets.begin_step(1);
  buckets.begin_round();
  torch::Tensor x = torch::randn({4, 4}).requires_grad_(true);
  EXPECT_THROW(Nested::apply(Nested::apply(Nested::apply(x, shared), shared), shared).sum().backward(), c10::Error);
}

TEST(GradientBuckets, HoldWhatMorePassesThanTheFirstStepHadBring) {
  const torch::Tensor shared = leaf({4, 4});
  MirrorGroup group;
  GradientBuckets buckets({{"shared", shared}}, group, {});
  for (const int passes : {1, 1, 2, 1}) {
    const torch::Tensor x = torch::randn({4, 4}).requires_grad_(true);
    const torch::Tensor want = torch::autograd::grad({shared.mm(x).sum()}, {shared})[0] * passes;
    buckets.begin_step(1);
    buckets.begin_round();
    buckets.note_forward_passes(passes);
    torch::Tensor loss = torch::zeros({});
    for (int pass = 0; pass < passes; ++pass) loss = loss + Nested::apply(x, shared).sum();
    loss.backward();
    buckets.finish_step();
    EXPECT_TRUE(torch::allclose(buckets.gradient(0), want * 2, 1e-5, 1e-5)) << passes;
  }
}

// Where a gradient is when autograd has made it.
struct Place {
  const void* memory = nullptr;
  explicit Place(const torch::Tensor& weight) {
    weight.register_hook([this](const torch::Tensor& gradient) { memory = gradient.const_data_ptr(); });
  }
};

TEST(GradientBuckets, LeaveTheGradientsOfAProcessAloneWhereTheyAre) {
  const Net net;
  SingleProcess alone;
  GradientBuckets buckets(net.parameters(), alone, {});
  EXPECT_EQ(buckets.bucket_count(), 0u);
  const torch::Tensor held = buckets.gradient(0);  // as an optimizer holds it
  EXPECT_EQ(held.strides(), net.first.strides());
  EXPECT_EQ(held.storage().nbytes(), 0u);
  const Place place(net.first);
  const std::vector<torch::Tensor> batches{torch::randn({6, 5})};
  const std::vector<torch::Tensor> want = expected(net, batches);
  run_step(buckets, net, batches);
  EXPECT_EQ(held.const_data_ptr(), place.memory);
  EXPECT_TRUE(held.equal(want[0]));
  buckets.begin_step(1);
  EXPECT_EQ(held.storage().nbytes(), 0u) << "kept while the next step runs forward";
}

// The mutant of the test above: a group needs the flat memory.
TEST(GradientBuckets, CopyTheGradientsOfAGroup) {
  const Net net;
  MirrorGroup group;
  GradientBuckets buckets(net.parameters(), group, {});
  const Place place(net.first);
  run_step(buckets, net, {torch::randn({6, 5})});
  EXPECT_NE(buckets.gradient(0).const_data_ptr(), place.memory);
}

TEST(GradientBuckets, OfAProcessAloneHaveTheBitsOfThoseInBuckets) {
  for (const torch::ScalarType dtype : {torch::kFloat32, torch::kBFloat16}) {
    const torch::Tensor start = torch::randn({8, 4, 3, 3}).to(dtype).contiguous(torch::MemoryFormat::ChannelsLast);
    const torch::Tensor images = torch::randn({3, 4, 6, 6}).to(dtype);
    const auto gradient = [&](ProcessGroup& group) {
      torch::Tensor weight = start.clone().requires_grad_(true);
      GradientBuckets buckets({{"weight", weight}}, group, {});
      buckets.begin_step(3);
      for (std::int64_t round = 0; round < 3; ++round) {
        buckets.begin_round();
        torch::conv2d(images.narrow(0, round, 1), weight).tanh().sum().backward();
      }
      buckets.finish_step();
      EXPECT_EQ(buckets.gradient(0).strides(), weight.strides());
      return buckets.gradient(0).clone();
    };
    SingleProcess alone;
    MirrorGroup pair;  // doubles, which is exact
    EXPECT_TRUE((gradient(alone) * 2).equal(gradient(pair)));
  }
}

TEST(GradientBuckets, RefuseMoreOrFewerRoundsThanSaid) {
  const Net net;
  SingleProcess alone;
  GradientBuckets buckets(net.parameters(), alone, {});
  buckets.begin_step(1);
  EXPECT_THROW(buckets.finish_step(), c10::Error);
  buckets.begin_round();
  EXPECT_THROW(buckets.begin_round(), c10::Error);
}

// Three threads that add to the same parameters: the sums are those of one after another, in the same order each time.
TEST(GradientBuckets, ChunksAddUpInTheirOrderWhicheverComesFirst) {
  const int threads = at::get_num_threads();
  at::set_num_threads(3);
  const Net net;
  SingleProcess alone;
  GradientBuckets buckets(net.parameters(), alone, {});
  const std::vector<torch::Tensor> batches{torch::randn({6, 5}), torch::randn({6, 5}), torch::randn({6, 5}),
                                           torch::randn({6, 5}), torch::randn({6, 5}), torch::randn({6, 5})};
  const auto in_chunks = [&](std::int64_t last) {
    buckets.begin_step(2);
    for (std::int64_t round = 0; round < 2; ++round) {
      buckets.begin_round(3);
      model::run_chunks(3, [&](std::int64_t index) {
        if (index == last) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        net.loss(batches[static_cast<std::size_t>(3 * round + index)]).backward();
      });
    }
    buckets.finish_step();
    return std::vector{buckets.gradient(0).clone(), buckets.gradient(1).clone()};
  };
  const std::vector<torch::Tensor> want = expected(net, batches), first = in_chunks(0);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(torch::allclose(first[i], want[i], 1e-5, 1e-6));
  for (int repeat = 0; repeat < 50; ++repeat) {
    const std::vector<torch::Tensor> again = in_chunks(repeat % 3);
    for (std::size_t i = 0; i < 2; ++i) ASSERT_TRUE(again[i].equal(first[i])) << "repeat " << repeat;
  }
  EXPECT_TRUE(buckets.gradient(2).eq(0).all().item<bool>());
  EXPECT_FALSE(net.first.grad().defined());
  at::set_num_threads(threads);
}

// Autograd hands out one tensor as the gradient of both, which must not become the sum of either; and one chunk's loss
// leaves the second parameter out.
TEST(GradientBuckets, ChunksShareNoMemoryAndMayLeaveAParameterOut) {
  const int threads = at::get_num_threads();
  at::set_num_threads(2);
  SingleProcess alone;
  torch::Tensor left = leaf({4}), right = leaf({4});
  GradientBuckets buckets({{"left", left}, {"right", right}}, alone, {});
  buckets.begin_step(2);
  for (int round = 0; round < 2; ++round) {
    buckets.begin_round(2);
    model::run_chunks(2, [&](std::int64_t index) {
      if (index == 0) {
        (left + right).sum().backward();
      } else {
        (left * 3).sum().backward();
      }
    });
  }
  buckets.finish_step();
  EXPECT_TRUE(buckets.gradient(0).eq(8).all().item<bool>()) << buckets.gradient(0);
  EXPECT_TRUE(buckets.gradient(1).eq(2).all().item<bool>()) << buckets.gradient(1);
  at::set_num_threads(threads);
}

// Each chunk's gradient goes into the float32 sum as it is.
TEST(GradientBuckets, ChunksInHalfPrecisionAddUpInFloat32) {
  const int threads = at::get_num_threads();
  at::set_num_threads(2);
  SingleProcess alone;
  torch::Tensor weight = torch::ones({64}, torch::kBFloat16).requires_grad_(true);
  GradientBuckets buckets({{"weight", weight}}, alone, {.float32_gradients = true});
  buckets.begin_step(1);
  buckets.begin_round(2);
  model::run_chunks(2, [&](std::int64_t index) { (weight * (index == 0 ? 256.0 : 1.0)).sum().backward(); });
  buckets.finish_step();
  EXPECT_EQ(buckets.gradient(0).scalar_type(), torch::kFloat32);
  EXPECT_TRUE(buckets.gradient(0).eq(257).all().item<bool>()) << "bfloat16 would round to 256";
  at::set_num_threads(threads);
}

TEST(GradientBuckets, ManyChunksOfAProcessAloneAreRoundedOnce) {
  const int threads = at::get_num_threads();
  at::set_num_threads(4);
  SingleProcess alone;
  torch::Tensor weight = torch::ones({64}, torch::kBFloat16).requires_grad_(true);
  GradientBuckets buckets({{"weight", weight}}, alone, {});
  buckets.begin_step(1);
  buckets.begin_round(4);
  model::run_chunks(4, [&](std::int64_t index) { (weight * (index == 0 ? 256.0 : 1.0)).sum().backward(); });
  buckets.finish_step();
  EXPECT_EQ(buckets.gradient(0).scalar_type(), torch::kBFloat16);
  EXPECT_TRUE(buckets.gradient(0).eq(260).all().item<bool>()) << "259 to nearest, ties to even; one by one: 256";
  at::set_num_threads(threads);
}

TEST(GradientBuckets, RefuseChunksBesideOtherRanks) {
  const Net net;
  MirrorGroup group;
  GradientBuckets buckets(net.parameters(), group, {});
  buckets.begin_step(1);
  EXPECT_THROW(buckets.begin_round(2), c10::Error);
}

}  // namespace
}  // namespace sdtune::train
