// Our kernels' entry functions as they are, on a CUDA runtime that counts launches and runs none: grids and arguments
// are those of a real launch.
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/core/cuda_table.h"
#include "model/core/draw_counter.h"
#include "tests/gpu/host/cuda_runtime.h"
#include "tests/gpu/recorded/contents.h"
#include "tests/gpu/recorded/current_device.h"
#include "tests/gpu/recorded/record.h"
#include "train/optim/optimizer_table.h"

// What table.cu names so in this library.
extern "C" const sdtune::model::CudaTable* sdtune_real_cuda_table();
extern "C" const sdtune::train::OptimizerTable* sdtune_real_optimizer_table();

namespace host_gpu {

namespace {

constexpr unsigned kMostBlocksYZ = 65535;
constexpr unsigned kMostThreads = 1024;
thread_local std::int64_t launched = 0;

}  // namespace

Position position = {};
int launches[2] = {};

bool run_grid(const Index& grid, unsigned threads, void (*)(const void*), const void*) {
  const bool fits = grid.x > 0 && grid.x <= 0x7fffffff && grid.y > 0 && grid.y <= kMostBlocksYZ && grid.z > 0 &&
                    grid.z <= kMostBlocksYZ && threads > 0 && threads <= kMostThreads;
  if (fits) ++launched;
  return fits;
}

void wait_for_block(const std::source_location&) {
  throw std::logic_error("recorded GPU: no kernel runs here");
}

Slot exchange(const Slot&, int, const std::source_location&) {
  throw std::logic_error("recorded GPU: no kernel runs here");
}

}  // namespace host_gpu

cudaError_t cudaGetDevice(int* device) {
  *device = sdtune::record::current_device();
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= sdtune::record::device_count()) return cudaErrorInvalidDevice;
  sdtune::record::set_current_device(device);
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  return cudaSuccess;
}

const char* cudaGetErrorString(cudaError_t status) {
  return status == cudaErrorInvalidValue ? "invalid configuration argument" : "error";
}

namespace sdtune::record {

namespace {

using model::CudaGroupNorm;
using model::CudaStream;
using model::CudaType;

std::int64_t size_of(CudaType type) {
  return type == CudaType::kFloat32 ? 4 : 2;
}

// One operator a launch; the bytes are those of the call.
template <typename Launch>
void count(const char* name, std::int64_t bytes, const Launch& launch) {
  host_gpu::launched = 0;
  launch();
  for (std::int64_t i = 0; i < host_gpu::launched; ++i) {
    Record::instance().add_operator(std::string("sdtune::") + name, i == 0 ? bytes : 0);
  }
}

const model::CudaTable& real() {
  return *sdtune_real_cuda_table();
}

const train::OptimizerTable& real_optimizer() {
  return *sdtune_real_optimizer_table();
}

// The numbers themselves, where they are few.
void draw_rows(const float* out, std::int64_t rows, std::int64_t row_size, const std::uint32_t* words) {
  const std::vector<char> bytes = contents_of(words);
  const auto count = static_cast<std::size_t>(rows * row_size);
  if (bytes.empty() || count * sizeof(float) > kMostBytes) return;
  std::vector<std::uint32_t> keys(bytes.size() / sizeof(std::uint32_t));
  std::memcpy(keys.data(), bytes.data(), keys.size() * sizeof(std::uint32_t));
  const std::uint64_t seed = keys[0] | std::uint64_t{keys[1]} << 32;
  std::vector<float> numbers(count);
  for (std::size_t at = 0; at < count; ++at) {
    const std::size_t row = at / static_cast<std::size_t>(row_size), column = at % static_cast<std::size_t>(row_size);
    float block[4];
    const model::DrawCounter counter = {keys[2 + row * 3], keys[3 + row * 3], keys[4 + row * 3]};
    model::normal_block(model::draw_block(seed, counter, static_cast<std::uint32_t>(column / 4)), block);
    numbers[at] = block[column % 4];
  }
  keep_contents(out, numbers.data(), count * sizeof(float));
}

void philox_normal(float* out, std::int64_t rows, std::int64_t row_size, const std::uint32_t* words,
                   const CudaStream& stream) {
  count("philox_normal", rows * row_size * 4, [&] { real().philox_normal(out, rows, row_size, words, stream); });
  draw_rows(out, rows, row_size, words);
}

std::int64_t numbers_of(const CudaGroupNorm& shape) {
  return shape.batch * shape.channels * shape.spatial;
}

// x is read twice, once for its statistics.
void group_norm_forward(const model::CudaGroupNormForward& tensors, const CudaGroupNorm& shape, CudaType type,
                        const CudaStream& stream) {
  count("group_norm_forward", 3 * numbers_of(shape) * size_of(type),
        [&] { real().group_norm_forward(tensors, shape, type, stream); });
}

void group_norm_backward(const model::CudaGroupNormBackward& tensors, const CudaGroupNorm& shape, CudaType type,
                         const CudaStream& stream) {
  count("group_norm_backward", 5 * numbers_of(shape) * size_of(type),
        [&] { real().group_norm_backward(tensors, shape, type, stream); });
}

void geglu_forward(const void* x, void* y, std::int64_t rows, std::int64_t width, CudaType type,
                   const CudaStream& stream) {
  count("geglu_forward", 3 * rows * width * size_of(type),
        [&] { real().geglu_forward(x, y, rows, width, type, stream); });
}

void geglu_backward(const void* grad_y, const void* x, void* grad_x, std::int64_t rows, std::int64_t width,
                    CudaType type, const CudaStream& stream) {
  count("geglu_backward", 5 * rows * width * size_of(type),
        [&] { real().geglu_backward(grad_y, x, grad_x, rows, width, type, stream); });
}

void adamw_step(const double* rates, std::int64_t groups, const float* factor, std::int64_t* updates,
                const train::CudaAdamWOptions& options, train::CudaAdamWStep* steps, const CudaStream& stream) {
  count("adamw_step", 0, [&] { real_optimizer().adamw_step(rates, groups, factor, updates, options, steps, stream); });
}

// Of whole chunks: master and two moments read and written, a gradient read, a weight of half precision written.
void adamw(const train::CudaParameter* parameters, const train::CudaChunk* chunks, std::int64_t chunk_count,
           CudaType weight, CudaType gradient, const train::CudaAdamWStep* step, const CudaStream& stream) {
  const std::int64_t weight_bytes = weight == CudaType::kFloat32 ? 0 : size_of(weight);
  count("adamw", chunk_count * train::kChunkNumbers * (6 * 4 + size_of(gradient) + weight_bytes),
        [&] { real_optimizer().adamw(parameters, chunks, chunk_count, weight, gradient, step, stream); });
}

void adamw_8bit(const train::CudaCodedParameter* parameters, const train::CudaChunk* chunks, std::int64_t chunk_count,
                CudaType weight, CudaType gradient, const train::CudaAdamWStep* step, const train::CudaCodeBook* book,
                const CudaStream& stream) {
  const std::int64_t weight_bytes = weight == CudaType::kFloat32 ? 0 : size_of(weight);
  count("adamw_8bit", chunk_count * train::kChunkNumbers * (2 * 4 + 4 + size_of(gradient) + weight_bytes),
        [&] { real_optimizer().adamw_8bit(parameters, chunks, chunk_count, weight, gradient, step, book, stream); });
}

void gradient_squares(const train::CudaGradient* gradients, const train::CudaChunk* chunks, std::int64_t chunk_count,
                      CudaType type, double* sums, const CudaStream& stream) {
  count("gradient_squares", chunk_count * train::kChunkNumbers * size_of(type),
        [&] { real_optimizer().gradient_squares(gradients, chunks, chunk_count, type, sums, stream); });
}

void gradient_norm(const double* sums, std::int64_t number, float* norm, const CudaStream& stream) {
  count("gradient_norm", number * 8, [&] { real_optimizer().gradient_norm(sums, number, norm, stream); });
}

}  // namespace

}  // namespace sdtune::record

extern "C" __attribute__((visibility("default"))) const sdtune::model::CudaTable* sdtune_cuda_table() {
  using namespace sdtune::record;
  static const sdtune::model::CudaTable table = {
      real().version,     real().architectures, real().ptx,    philox_normal, real().group_norm_workspace,
      group_norm_forward, group_norm_backward,  geglu_forward, geglu_backward};
  return &table;
}

extern "C" __attribute__((visibility("default"))) const sdtune::train::OptimizerTable* sdtune_optimizer_table() {
  using namespace sdtune::record;
  static const sdtune::train::OptimizerTable table = {real_optimizer().version, adamw_step,   adamw, adamw_8bit,
                                                      gradient_squares,         gradient_norm};
  return &table;
}
