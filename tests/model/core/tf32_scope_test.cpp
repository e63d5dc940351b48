#include "model/core/tf32_scope.h"

#include <ATen/Context.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <memory>

namespace sdtune::model {
namespace {

// allow_tf32 of a run: off unless asked for, of matrix products and of convolutions, and restored afterwards.
TEST(Tf32Scope, SetsBothSwitchesAndGivesThemBack) {
  at::Context& context = at::globalContext();
  const bool products = context.allowTF32CuBLAS();
  const bool convolutions = context.allowTF32CuDNN();
  {
    const Tf32Scope allowed(true);
    EXPECT_TRUE(context.allowTF32CuBLAS());
    EXPECT_TRUE(context.allowTF32CuDNN());
    const Tf32Scope refused(false);
    EXPECT_FALSE(context.allowTF32CuBLAS());
    EXPECT_FALSE(context.allowTF32CuDNN());
  }
  EXPECT_EQ(context.allowTF32CuBLAS(), products);
  EXPECT_EQ(context.allowTF32CuDNN(), convolutions);
}

TEST(Tf32Scope, RestoresThemWhenScopesOfTwoThreadsEndInTheOrderTheyBegan) {
  at::Context& context = at::globalContext();
  const bool products = context.allowTF32CuBLAS();
  auto first = std::make_unique<Tf32Scope>(!products);
  auto second = std::make_unique<Tf32Scope>(!products);
  first.reset();
  second.reset();
  EXPECT_EQ(context.allowTF32CuBLAS(), products);
}

// A call of a pipeline that was under way when a training began: its end must not give the training LibTorch's own
// switches, of which that of convolutions allows TF32.
TEST(Tf32Scope, KeepsTheNewestOnesSwitchesWhenAnEarlierOneEnds) {
  at::Context& context = at::globalContext();
  const bool products = context.allowTF32CuBLAS();
  const bool convolutions = context.allowTF32CuDNN();
  context.setAllowTF32CuBLAS(true);
  context.setAllowTF32CuDNN(true);
  auto call = std::make_unique<Tf32Scope>(false);
  auto training = std::make_unique<Tf32Scope>(false);
  call.reset();
  EXPECT_FALSE(context.allowTF32CuBLAS());
  EXPECT_FALSE(context.allowTF32CuDNN());
  auto allowed = std::make_unique<Tf32Scope>(true);
  training.reset();
  EXPECT_TRUE(context.allowTF32CuBLAS());
  allowed.reset();
  EXPECT_TRUE(context.allowTF32CuDNN());
  context.setAllowTF32CuBLAS(products);
  context.setAllowTF32CuDNN(convolutions);
}

// torch.backends.cuda.matmul.fp32_precision and the like: LibTorch then refuses to read the older switches.
TEST(Tf32Scope, WorksWhereAProcessHasSetTheNewerSwitches) {
  at::Context& context = at::globalContext();
  const bool products = context.allowTF32CuBLAS();
  const bool convolutions = context.allowTF32CuDNN();
  const auto precision_of = [&](at::Float32Op op) { return context.float32Precision(at::Float32Backend::CUDA, op); };
  const auto other = [](bool allowed) { return allowed ? at::Float32Precision::IEEE : at::Float32Precision::TF32; };
  context.setFloat32Precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL, other(products));
  context.setFloat32Precision(at::Float32Backend::CUDA, at::Float32Op::CONV, other(convolutions));
  EXPECT_THROW(context.allowTF32CuBLAS(), c10::Error);
  EXPECT_THROW(context.allowTF32CuDNN(), c10::Error);
  for (const bool allowed : {false, true}) {
    const Tf32Scope scope(allowed);
    EXPECT_EQ(context.allowTF32CuBLAS(), allowed);
    EXPECT_EQ(context.allowTF32CuDNN(), allowed);
  }
  EXPECT_EQ(precision_of(at::Float32Op::MATMUL), other(products));
  EXPECT_EQ(precision_of(at::Float32Op::CONV), other(convolutions));
  EXPECT_THROW(context.allowTF32CuBLAS(), c10::Error);
  EXPECT_THROW(context.allowTF32CuDNN(), c10::Error);
  context.setAllowTF32CuBLAS(products);
  context.setAllowTF32CuDNN(convolutions);
}

// torch.backends.fp32_precision = "tf32", which holds for every operator that says nothing itself.
TEST(Tf32Scope, RefusesWhatAProcessAllowsForAllOperators) {
  at::Context& context = at::globalContext();
  const bool products = context.allowTF32CuBLAS();
  context.setFloat32Precision(at::Float32Backend::GENERIC, at::Float32Op::ALL, at::Float32Precision::TF32);
  {
    const Tf32Scope refused(false);
    EXPECT_NE(context.float32Precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL), at::Float32Precision::TF32);
    EXPECT_NE(context.float32Precision(at::Float32Backend::CUDA, at::Float32Op::CONV), at::Float32Precision::TF32);
  }
  context.setFloat32Precision(at::Float32Backend::GENERIC, at::Float32Op::ALL, at::Float32Precision::NONE);
  context.setAllowTF32CuBLAS(products);
}

}  // namespace
}  // namespace sdtune::model
