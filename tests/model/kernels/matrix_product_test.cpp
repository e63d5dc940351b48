#include "model/kernels/matrix_product.h"

#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <tuple>
#include <vector>

#include "model/core/cpu_implementation.h"
#include "tests/support/relative_error.h"

namespace sdtune::model {
namespace {

torch::Tensor leaf(at::IntArrayRef sizes) {
  return torch::randn(sizes).set_requires_grad(true);
}

using Apply = torch::Tensor (*)(const torch::Tensor&, const torch::Tensor&, const torch::Tensor&);

// Only some processors are sent to oneDNN: it must be right on each that can go there.
std::vector<Apply> every_linear() {
  if (can_multiply_by_onednn()) return {&apply_linear, &onednn_linear};
  return {&apply_linear};
}

// Sizes of x, and features that come out: below and above the number of multiplications from where it may be oneDNN.
using MatrixCase = std::tuple<std::vector<int64_t>, int64_t>;
class LinearCases : public testing::TestWithParam<MatrixCase> {};

void expect_double_precision(Apply apply, const std::vector<int64_t>& sizes, int64_t features) {
  torch::manual_seed(0);
  const torch::Tensor x = leaf(sizes), weight = leaf({features, sizes.back()}), bias = leaf({features});
  const torch::Tensor y = apply(x, weight, bias);
  const torch::Tensor expected =
      torch::linear(x.to(torch::kFloat64), weight.to(torch::kFloat64), bias.to(torch::kFloat64));
  ASSERT_EQ(y.sizes(), expected.sizes());
  EXPECT_LE(test::relative_error(y, expected), 1e-6);
  EXPECT_LE(test::relative_error(apply(x, weight, {}) + bias, expected), 1e-6);
  EXPECT_GT(test::relative_error(apply(x, weight, {}), expected), 1e-3) << "a bias left out must show";
  const torch::Tensor dy = torch::randn(y.sizes());
  const auto ours = torch::autograd::grad({y}, {x, weight, bias}, {dy});
  const auto theirs = torch::autograd::grad({expected}, {x, weight, bias}, {dy.to(torch::kFloat64)});
  for (size_t i = 0; i < ours.size(); ++i) EXPECT_LE(test::relative_error(ours[i], theirs[i]), 2e-6) << "leaf " << i;
}

TEST_P(LinearCases, AgreesWithDoublePrecisionForwardAndBackward) {
  const auto& [sizes, features] = GetParam();
  for (const Apply apply : every_linear()) expect_double_precision(apply, sizes, features);
}

INSTANTIATE_TEST_SUITE_P(Shapes, LinearCases,
                         testing::Values(MatrixCase{{2, 5, 7}, 3}, MatrixCase{{1, 33}, 65},
                                         MatrixCase{{2, 77, 96}, 192}, MatrixCase{{4, 64, 128}, 1024},
                                         MatrixCase{{130, 1153}, 31}));

TEST(Linear, ResultMayBeAddedToInPlace) {
  torch::manual_seed(0);
  const torch::Tensor x = torch::randn({2, 64, 128}), other = leaf({2, 64, 256}), weight = leaf({256, 128});
  const auto gradients = [&](const torch::Tensor& y) {
    return torch::autograd::grad({y.square().sum()}, {weight, other});
  };
  const auto apart = gradients(torch::linear(x, weight) + other * 0.5);
  for (const Apply apply : every_linear()) {
    const auto in_place = gradients(apply(x, weight, {}).add_(other, 0.5));
    for (size_t i = 0; i < apart.size(); ++i) EXPECT_LE(test::relative_error(in_place[i], apart[i]), 2e-6);
  }
}

TEST(Linear, LeavesAloneWhatNeedsNoGradient) {
  const torch::Tensor x = torch::randn({4, 64, 128}), weight = torch::randn({1024, 128}), bias = leaf({1024});
  for (const Apply apply : every_linear()) {
    EXPECT_FALSE(apply(x, weight, {}).requires_grad());
    bias.mutable_grad().reset();
    apply(x, weight, bias).sum().backward();
    EXPECT_TRUE(torch::allclose(bias.grad(), torch::full({1024}, 256.0)));
  }
}

using Multiply = torch::Tensor (*)(const torch::Tensor&, const torch::Tensor&, const torch::Tensor&);

std::vector<Multiply> every_product() {
  if (can_multiply_by_onednn()) return {&product, &onednn_product};
  return {&product};
}

TEST(Product, AgreesWithDoublePrecisionHoweverItsMatricesLie) {
  torch::manual_seed(0);
  for (const auto& [m, k, n] : {std::tuple<int64_t, int64_t, int64_t>{1, 7, 3}, {64, 1152, 128}, {33, 129, 257}}) {
    const torch::Tensor a = torch::randn({m, k}), b = torch::randn({k, n}), bias = torch::randn({n});
    const torch::Tensor expected = torch::addmm(bias.to(torch::kFloat64), a.to(torch::kFloat64), b.to(torch::kFloat64));
    const torch::Tensor a_by_columns = a.t().contiguous().t(), b_by_columns = b.t().contiguous().t();
    const torch::Tensor slice = torch::cat({a, a}, 1).slice(1, 0, k);
    for (const Multiply multiply : every_product()) {
      for (const torch::Tensor& left : {a, a_by_columns, slice}) {
        for (const torch::Tensor& right : {b, b_by_columns}) {
          EXPECT_LE(test::relative_error(multiply(left, right, bias), expected), 1e-6) << m << " " << k << " " << n;
          EXPECT_LE(test::relative_error(multiply(left, right, {}) + bias, expected), 1e-6);
        }
      }
      EXPECT_TRUE(torch::equal(multiply(a, b, bias), multiply(a, b, bias)));
    }
  }
}

bool is_taken = false;

std::unique_ptr<at::ObserverContext> note_small_product(const at::RecordFunction& function) {
  is_taken = is_taken || std::string_view(function.name()) == "sdtune::small_product";
  return nullptr;
}

template <class Run>
bool takes_small_product(const Run& run) {
  is_taken = false;
  const at::CallbackHandle handle = at::addThreadLocalCallback(at::RecordFunctionCallback(note_small_product));
  run();
  at::removeCallback(handle);
  return is_taken;
}

TEST(Product, OfSmallMatricesIsAChoice) {
  if (!vectors_of_this_cpu()) GTEST_SKIP() << "a CPU without AVX2 has one way";
  const torch::Tensor a = torch::randn({64, 300}), b = torch::randn({300, 128}), large = torch::randn({600, 300});
  for (const bool is_chosen : {true, false}) {
    CpuImplementation implementation = default_cpu_implementation();
    implementation.small_products = is_chosen;
    const CpuImplementationScope scope(implementation);
    EXPECT_EQ(takes_small_product([&] { product(a, b); }), is_chosen);
    EXPECT_EQ(takes_small_product([&] { apply_linear(a, b.t()); }), is_chosen);
    EXPECT_EQ(takes_small_product([&] { product(large, b); }), is_chosen && vectors_of_this_cpu() == Vectors::kAvx2);
  }
}

// Where the frames of signal handlers on the measured thread lie: all within [lowest, highest]. A signal of the process
// may arrive on any thread, also one that an earlier test of this program left.
std::atomic<uintptr_t> lowest{UINTPTR_MAX}, highest{0};
std::atomic<int> signals{0};
pthread_t measured;

void note_frame(int) {
  if (pthread_equal(pthread_self(), measured) == 0) return;
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  if (here < lowest) lowest = here;
  if (here > highest) highest = here;
  ++signals;
}

// A timer's signals a thousand times a second while it lives.
class SignalRain {
 public:
  SignalRain() {
    struct sigaction action = {};
    action.sa_handler = note_frame;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, &old_);
    set(1000);
  }
  ~SignalRain() {
    set(0);
    sigaction(SIGALRM, &old_, nullptr);
  }

 private:
  static void set(int microseconds) {
    const itimerval every = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &every, nullptr);
  }
  struct sigaction old_ = {};
};

// As the small person's model has them; with few rows among them, for which oneDNN would take another kernel if asked
// for a lone matrix, one that puts its data where a signal's frame goes.
TEST(Product, LeavesTheStackPointerOnTheStack) {
  const torch::NoGradGuard no_grad;
  at::set_num_threads(1);
  signals = 0;
  measured = pthread_self();
  const SignalRain rain;
  for (const auto& [m, k, n] :
       {std::tuple<int64_t, int64_t, int64_t>{77, 384, 384}, {128, 384, 3072}, {512, 2304, 256}}) {
    const torch::Tensor a = torch::ones({m, k}), b = torch::ones({k, n}), dy = torch::ones({m, n});
    for (const Multiply multiply : every_product()) {
      for (const int until = signals + 100; signals < until;) {
        multiply(a, b, {});
        multiply(dy, b.t(), {});
        multiply(a.t(), dy, {});
      }
    }
  }
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_getattr_np(pthread_self(), &attributes), 0);
  void* stack = nullptr;
  size_t bytes = 0;
  pthread_attr_getstack(&attributes, &stack, &bytes);
  pthread_attr_destroy(&attributes);
  EXPECT_GE(lowest.load(), reinterpret_cast<uintptr_t>(stack));
  EXPECT_LT(highest.load(), reinterpret_cast<uintptr_t>(stack) + bytes);
}

}  // namespace
}  // namespace sdtune::model
