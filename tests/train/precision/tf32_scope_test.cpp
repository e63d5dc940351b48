#include "train/precision/tf32_scope.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

namespace sdtune::train {
namespace {

// allow_tf32 of a run: off unless asked for, and restored afterwards.
TEST(Tf32Scope, SetsTheSwitchAndGivesItBack) {
  at::Context& context = at::globalContext();
  const bool before = context.allowTF32CuBLAS();
  {
    const Tf32Scope allowed(true);
    EXPECT_TRUE(context.allowTF32CuBLAS());
    const Tf32Scope refused(false);
    EXPECT_FALSE(context.allowTF32CuBLAS());
  }
  EXPECT_EQ(context.allowTF32CuBLAS(), before);
}

}  // namespace
}  // namespace sdtune::train
