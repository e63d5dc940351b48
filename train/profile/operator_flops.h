// The floating-point operations of LibTorch's operators, from the shapes of their arguments.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

#include <string_view>

namespace sdtune::train {

struct OperatorFlops {
  double flops = 0;           // 2 a multiply-add
  bool is_attention = false;  // of pixels to pixels, which grows with the square of their number
};

// 0 for operators that only move or combine single numbers, and for those that call another one which counts.
OperatorFlops operator_flops(std::string_view name, c10::ArrayRef<const c10::IValue> arguments);

}  // namespace sdtune::train
