#include "model/kernels/patches.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "model/products/vector_math.h"

namespace sdtune::model {
namespace {

struct PatchGrid {
  PatchGrid(const torch::Tensor& map, const PatchShape& patch)
      : shape(patch),
        batch(map.size(0)),
        channels(map.size(1)),
        height(map.size(2)),
        width(map.size(3)),
        out_height((height + 2 * patch.padding - patch.kernel) / patch.stride + 1),
        out_width((width + 2 * patch.padding - patch.kernel) / patch.stride + 1) {}
  int64_t taps() const { return shape.kernel * shape.kernel; }
  int64_t rows() const { return batch * out_height * out_width; }

  PatchShape shape;
  int64_t batch, channels, height, width, out_height, out_width;
};

// One row: channel c's value at tap t goes to column c * taps + t.
template <class T>
void gather_row(const T* x, T* row, const PatchGrid& grid, int64_t index) {
  const int64_t out_x = index % grid.out_width, out_y = index / grid.out_width % grid.out_height;
  const T* image = x + index / (grid.out_width * grid.out_height) * grid.height * grid.width * grid.channels;
  const int64_t taps = grid.taps();
  for (int64_t tap = 0; tap < taps; ++tap) {
    const int64_t in_y = out_y * grid.shape.stride + tap / grid.shape.kernel - grid.shape.padding;
    const int64_t in_x = out_x * grid.shape.stride + tap % grid.shape.kernel - grid.shape.padding;
    T* column = row + tap;
    if (in_y < 0 || in_y >= grid.height || in_x < 0 || in_x >= grid.width) {
      for (int64_t c = 0; c < grid.channels; ++c) column[c * taps] = T(0.0f);
      continue;
    }
    const T* pixel = image + (in_y * grid.width + in_x) * grid.channels;
    for (int64_t c = 0; c < grid.channels; ++c) column[c * taps] = pixel[c];
  }
}

// One pixel of the map: the sum over the patches that it is in, at the tap where it lies in each. `sums`: a number a
// channel.
void sum_into_pixel(const PatchColumns& patches, float* sums, const PatchGrid& grid, int64_t index) {
  const int64_t in_x = index % grid.width, in_y = index / grid.width % grid.height;
  const int64_t image = index / (grid.width * grid.height);
  const int64_t taps = grid.taps();
  std::fill_n(sums, patches.channels, 0.0f);
  for (int64_t tap = 0; tap < taps; ++tap) {
    const int64_t y = in_y + grid.shape.padding - tap / grid.shape.kernel;
    const int64_t x = in_x + grid.shape.padding - tap % grid.shape.kernel;
    if (y < 0 || x < 0 || y % grid.shape.stride != 0 || x % grid.shape.stride != 0) continue;
    const int64_t out_y = y / grid.shape.stride, out_x = x / grid.shape.stride;
    if (out_y >= grid.out_height || out_x >= grid.out_width) continue;
    const int64_t row = (image * grid.out_height + out_y) * grid.out_width + out_x;
    const float* column = patches.data + row * patches.row_step + tap;
    for (int64_t c = 0; c < patches.channels; ++c) sums[c] += column[c * taps];
  }
}

template <class T>
void gather_rows(const torch::Tensor& x, const PatchGrid& grid, const torch::Tensor& patches) {
  const int64_t columns = patches.size(1);
  const auto* in = x.const_data_ptr<T>();
  auto* out = patches.mutable_data_ptr<T>();
  at::parallel_for(0, grid.rows(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) gather_row(in, out + row * columns, grid, row);
  });
}

}  // namespace

torch::Tensor gather_patches(const torch::Tensor& x, const PatchShape& shape) {
  const PatchGrid grid(x, shape);
  torch::Tensor patches = torch::empty({grid.rows(), grid.channels * grid.taps()}, x.options());
  if (x.scalar_type() == torch::kBFloat16) {
    gather_rows<c10::BFloat16>(x, grid, patches);
  } else {
    gather_rows<float>(x, grid, patches);
  }
  return patches;
}

torch::Tensor scatter_patches(const torch::Tensor& patches, const torch::Tensor& like, const PatchShape& shape) {
  const PatchGrid grid(like, shape);
  torch::Tensor map = torch::empty_like(like, torch::MemoryFormat::ChannelsLast);
  const PatchColumns all = {patches.const_data_ptr<float>(), patches.size(1), 0, grid.channels};
  auto* out = map.mutable_data_ptr<float>();
  at::parallel_for(0, grid.batch * grid.height * grid.width, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sum_into_pixel(all, out + i * grid.channels, grid, i);
  });
  return map;
}

void scatter_channels(const PatchColumns& patches, const torch::Tensor& map, const PatchShape& shape) {
  const PatchGrid grid(map, shape);
  std::vector<float> sums(static_cast<std::size_t>(patches.channels));
  auto* out = map.mutable_data_ptr<c10::BFloat16>() + patches.first;
  for (int64_t i = 0; i < grid.batch * grid.height * grid.width; ++i, out += grid.channels) {
    sum_into_pixel(patches, sums.data(), grid, i);
    for (int64_t c = 0; c < patches.channels; ++c) store(out + c, sums[static_cast<std::size_t>(c)]);
  }
}

}  // namespace sdtune::model
