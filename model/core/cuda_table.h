// What libsdtune_cuda.so offers: our kernels as plain functions on raw pointers and a stream, filled in when the
// library is loaded (device.h). No LibTorch and no CUDA header, so the kernels build without the one and the program
// without the other. All pointers are of the device unless said otherwise. Nothing synchronises. A launch that fails
// throws std::runtime_error naming kernel, device and grid, or KernelOutOfMemory; arguments out of range throw
// std::invalid_argument. The optimizers' kernels have a table of their own (train/optim/optimizer_table.h).
#pragma once

#include <cstdint>
#include <new>
#include <string>
#include <utility>

namespace sdtune::model {

// The device had no memory left for a launch: a kernel's code is loaded when it is first launched.
class KernelOutOfMemory : public std::bad_alloc {
 public:
  explicit KernelOutOfMemory(std::string what) : what_(std::move(what)) {}
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};

// Element types of kernels that take several.
enum class CudaType : std::int32_t { kFloat32 = 0, kBFloat16 = 1, kFloat16 = 2 };

// A cudaStream_t and the device that it belongs to: a null handle is the default stream of whatever device is current,
// so a launch has to make this one current.
struct CudaStream {
  void* handle = nullptr;
  std::int32_t device = 0;
};

struct CudaGroupNorm {
  std::int64_t batch;
  std::int64_t channels;
  std::int64_t spatial;  // H * W; channels * spatial below 2^31
  std::int64_t groups;   // at most 256 channels each
  float epsilon;
  bool silu;           // y = silu(norm(x + offset)); else y = norm(x + offset)
  bool channels_last;  // memory order [B, H, W, C], else [B, C, H, W]
};

// What a forward pass leaves for the backward one: kGroupNormColumns rows of float32 [B, C].
inline constexpr std::int64_t kGroupNormColumns = 5;

// Tensors of one pass. x, y and their gradients in the shape's memory order, weight and bias [C], offset [B, C] or
// null, all of the pass's element type.
struct CudaGroupNormForward {
  const void* x;
  const void* weight;
  const void* bias;
  const void* offset;
  void* y;
  float* columns;    // [kGroupNormColumns, B, C], written
  float* rstd;       // [B, groups], written
  float* workspace;  // group_norm_workspace() numbers
};

struct CudaGroupNormBackward {
  const void* grad_y;
  const void* x;
  const float* columns;  // of the forward pass
  const float* rstd;
  void* grad_x;
  void* grad_weight;  // [C], written; null together with grad_bias: not computed
  void* grad_bias;    // [C]
  void* grad_offset;  // [B, C], or null
  float* workspace;
};

struct CudaTable {
  std::uint32_t version;              // kCudaTableVersion, checked at load
  const std::int32_t* architectures;  // host; compiled SASS as 75, 90, ..., ended by 0
  std::int32_t ptx;                   // architecture of the PTX that comes along, 0 for none

  // out [rows, row_size]: row i is the draw of counter i. words: seed low, seed high, then 3 words of DrawCounter a
  // row. At most 65535 rows.
  void (*philox_normal)(float* out, std::int64_t rows, std::int64_t row_size, const std::uint32_t* words,
                        const CudaStream& stream);

  // Numbers of float32 that either pass needs as workspace.
  std::int64_t (*group_norm_workspace)(const CudaGroupNorm& shape, CudaType type);
  void (*group_norm_forward)(const CudaGroupNormForward& tensors, const CudaGroupNorm& shape, CudaType type,
                             const CudaStream& stream);
  void (*group_norm_backward)(const CudaGroupNormBackward& tensors, const CudaGroupNorm& shape, CudaType type,
                              const CudaStream& stream);

  // y [rows, width] = x[:, :width] * gelu(x[:, width:]), exact gelu; x [rows, 2 * width], below 2^31 numbers.
  void (*geglu_forward)(const void* x, void* y, std::int64_t rows, std::int64_t width, CudaType type,
                        const CudaStream& stream);
  void (*geglu_backward)(const void* grad_y, const void* x, void* grad_x, std::int64_t rows, std::int64_t width,
                         CudaType type, const CudaStream& stream);
};

inline constexpr std::uint32_t kCudaTableVersion = 2;
// The C symbol of the library: `const CudaTable* sdtune_cuda_table()`.
inline constexpr const char* kCudaTableSymbol = "sdtune_cuda_table";

}  // namespace sdtune::model
