#include "model/core/tf32_scope.h"

#include <ATen/Context.h>
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

}  // namespace
}  // namespace sdtune::model
