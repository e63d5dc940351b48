// What libsdtune_cuda.so offers: our kernels as plain functions on raw pointers and a stream, filled in when the
// library is loaded (device.h). No LibTorch and no CUDA header, so the kernels build without the one and the program
// without the other. All pointers are of the device unless said otherwise; `stream` is a cudaStream_t. Nothing
// synchronises.
#pragma once

#include <cstdint>

namespace sdtune::model {

// Element types of kernels that take several.
enum class CudaType : std::int32_t { kFloat32 = 0, kBFloat16 = 1, kFloat16 = 2 };

// One parameter of a multi-tensor step. An array of these lies in device memory.
struct CudaParameter {
  void* weight;          // [count] of weight_type, written
  const void* gradient;  // [count] of gradient_type
  float* master;         // [count]; may equal `weight` where that is float32
  float* first_moment;   // [count]
  float* second_moment;  // [count]
  std::int64_t count;
};

// Values of one optimizer step, in device memory, so that a captured graph replays right and no value is waited for.
struct CudaAdamWStep {
  float learning_rate;
  float bias_correction1;  // 1 - beta1^t
  float bias_correction2;  // 1 - beta2^t
  float gradient_scale;    // what each gradient is multiplied with first: clip coefficient / loss scale
  std::int32_t skip;       // not 0: found_inf, the step changes nothing
};

struct CudaAdamWConstants {
  float beta1;
  float beta2;
  float epsilon;
  float weight_decay;
};

struct CudaGroupNorm {
  std::int64_t batch;
  std::int64_t channels;
  std::int64_t spatial;  // H * W
  std::int64_t groups;
  float epsilon;
  bool silu;           // y = silu(norm(x)); else y = norm(x)
  bool channels_last;  // memory order [B, H, W, C], else [B, C, H, W]
};

struct CudaTable {
  std::uint32_t version;              // kCudaTableVersion, checked at load
  const std::int32_t* architectures;  // host; compiled SASS as 75, 90, ..., ended by 0
  std::int32_t ptx;                   // architecture of the PTX that comes along, 0 for none

  // out [rows, row_size]: row i is the draw of counter i. words: seed low, seed high, then 3 words of DrawCounter a
  // row.
  void (*philox_normal)(float* out, std::int64_t rows, std::int64_t row_size, const std::uint32_t* words, void* stream);

  // AdamW with decoupled decay over `parameters` [parameter_count]; largest = the largest `count` among them.
  void (*adamw)(const CudaParameter* parameters, std::int64_t parameter_count, std::int64_t largest,
                CudaType weight_type, CudaType gradient_type, const CudaAdamWConstants& constants,
                const CudaAdamWStep* step, void* stream);

  // sum[0] += the sum of squares of every gradient; found_inf[0] = 1 where one is not finite. The caller zeroes both.
  void (*sum_of_squares)(const CudaParameter* parameters, std::int64_t parameter_count, std::int64_t largest,
                         CudaType gradient_type, double* sum, std::int32_t* found_inf, void* stream);

  // mean, rstd: float32 [B, groups], written. weight, bias: [C] of `type`.
  void (*group_norm_forward)(const void* x, const void* weight, const void* bias, void* y, float* mean, float* rstd,
                             const CudaGroupNorm& shape, CudaType type, void* stream);
  // grad_weight, grad_bias: float32 [C], added to (zero them first), or both null.
  void (*group_norm_backward)(const void* grad_y, const void* x, const void* weight, const void* bias,
                              const float* mean, const float* rstd, void* grad_x, float* grad_weight, float* grad_bias,
                              const CudaGroupNorm& shape, CudaType type, void* stream);

  // y [rows, width] = x[:, :width] * gelu(x[:, width:]), exact gelu; x [rows, 2 * width].
  void (*geglu_forward)(const void* x, void* y, std::int64_t rows, std::int64_t width, CudaType type, void* stream);
  void (*geglu_backward)(const void* grad_y, const void* x, void* grad_x, std::int64_t rows, std::int64_t width,
                         CudaType type, void* stream);
};

inline constexpr std::uint32_t kCudaTableVersion = 1;
// The C symbol of the library: `const CudaTable* sdtune_cuda_table()`.
inline constexpr const char* kCudaTableSymbol = "sdtune_cuda_table";

}  // namespace sdtune::model
