// The inner loops of AdamW and of the gradient norm on raw memory. Each multiplication is rounded by itself (no
// contraction to fused multiply-add), so every kind of x86 computes the same bits.
#pragma once

#include <cstdint>

namespace sdtune::train {

enum class NumberFormat { kFloat32, kBFloat16, kFloat16 };

// A run of numbers in one of the formats.
struct NumberRun {
  void* data = nullptr;
  NumberFormat format = NumberFormat::kFloat32;
};

// Scalars of one update, in torch.optim.AdamW's order of operations.
struct AdamWScalars {
  float gradient_factor = 1;        // clipping and loss scale
  float decay = 1;                  // 1 - rate * weight_decay
  float beta1 = 0, beta2 = 0;       // of the moments
  float keep1 = 1, keep2 = 1;       // 1 - beta, rounded once
  float step_size = 0;              // rate / (1 - beta1^t)
  float root_bias_correction2 = 1;  // sqrt(1 - beta2^t)
  float epsilon = 0;
};

// One parameter's part: `count` numbers of each. `weight` receives the rounded master; it may be the master itself.
struct AdamWRun {
  float* master = nullptr;
  float* mean = nullptr;    // first moment
  float* square = nullptr;  // second moment
  NumberRun gradient;
  NumberRun weight;
  std::int64_t count = 0;
};

void adamw_update(const AdamWRun& run, const AdamWScalars& scalars);

// Sum of squares of `count` numbers.
double sum_of_squares(const NumberRun& run, std::int64_t count);

}  // namespace sdtune::train
