// The optimizers' kernels in libsdtune_cuda.so, as model/core/cuda_table.h has the model's: plain functions on raw
// pointers of the device and a stream; nothing synchronises. Many parameters take one launch: a list in device memory
// names the parameters, another the chunks that they are cut into, so that every block has the same amount of work.
#pragma once

#include <cstdint>

#include "model/core/cuda_table.h"
#include "train/optim/adamw_kernel.h"

namespace sdtune::train {

// One parameter of AdamW, all in one memory order.
struct CudaParameter {
  void* weight;          // [count] of the launch's weight type, written
  const void* gradient;  // [count] of the launch's gradient type
  float* master;         // [count]; may equal `weight` where that is float32
  float* mean;           // [count], first moment
  float* square;         // [count], second moment
  std::int64_t count;
};

// One parameter whose moments are codes of DynamicCode in blocks of 256 (adamw_8bit_kernel.h). Codes are in the order
// of the shape, as checkpoints hold them; weight, gradient and master may lie channels_last.
struct CudaCodedParameter {
  void* weight;
  const void* gradient;
  float* master;
  std::uint8_t* mean_codes;  // [blocks * 256]
  std::uint8_t* square_codes;
  float* mean_scales;  // [blocks]
  float* square_scales;
  std::int64_t count;  // below 2^31
  // Of a channels_last weight [out, channels, taps]: number i of the shape's order, that is tap i % taps of channel
  // i / taps % channels, lies at tap * channels + channel of its row. 1 and 1 where memory is in the shape's order.
  std::int32_t channels;
  std::int32_t taps;
};

struct CudaGradient {
  const void* numbers;
  std::int64_t count;
};

// kChunkNumbers numbers of a parameter (the last chunk has what is left): from index * kChunkNumbers on.
inline constexpr std::int64_t kChunkNumbers = 16384;
struct CudaChunk {
  std::int32_t parameter;
  std::int32_t index;
};

struct CudaAdamWOptions {
  double beta1, beta2, epsilon, weight_decay;
};

// Values of one step, in device memory, so that a captured graph replays right and no value is waited for.
struct CudaAdamWStep {
  AdamWScalars scalars;
  std::int32_t skip;  // not 0: the gradient factor is not finite, and the step changes nothing
};

// The two data types of 8-bit moments (dynamic_code.h), [0] of means and [1] of squares. midpoints[255] is infinity.
struct CudaCodeBook {
  float values[2][256];
  float midpoints[2][256];
};

struct OptimizerTable {
  std::uint32_t version;  // kOptimizerTableVersion, checked at load

  // rates [groups] -> steps [groups] as adamw_scalars() has them; adds one to updates[0] unless gradient_factor[0] is
  // not finite.
  void (*adamw_step)(const double* rates, std::int64_t groups, const float* gradient_factor, std::int64_t* updates,
                     const CudaAdamWOptions& options, CudaAdamWStep* steps, const model::CudaStream& stream);
  // adamw_update() (adamw_kernel.h), with the same bits.
  void (*adamw)(const CudaParameter* parameters, const CudaChunk* chunks, std::int64_t chunk_count,
                model::CudaType weight_type, model::CudaType gradient_type, const CudaAdamWStep* step,
                const model::CudaStream& stream);
  // adamw_8bit_update() (adamw_8bit_kernel.h), with the same bits and codes.
  void (*adamw_8bit)(const CudaCodedParameter* parameters, const CudaChunk* chunks, std::int64_t chunk_count,
                     model::CudaType weight_type, model::CudaType gradient_type, const CudaAdamWStep* step,
                     const CudaCodeBook* book, const model::CudaStream& stream);
  // sums[i]: the sum of squares of chunk i in double, always added in the same order; not finite where a number is not.
  void (*gradient_squares)(const CudaGradient* gradients, const CudaChunk* chunks, std::int64_t chunk_count,
                           model::CudaType gradient_type, double* sums, const model::CudaStream& stream);
  // norm[0] = sqrt(sums[0] + ... + sums[count - 1]).
  void (*gradient_norm)(const double* sums, std::int64_t count, float* norm, const model::CudaStream& stream);
};

inline constexpr std::uint32_t kOptimizerTableVersion = 1;
// The C symbol of the library: `const OptimizerTable* sdtune_optimizer_table()`.
inline constexpr const char* kOptimizerTableSymbol = "sdtune_optimizer_table";

}  // namespace sdtune::train
