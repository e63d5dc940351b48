#include "model/kernels/winograd_panels.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "model/core/cpu_implementation.h"
#include "model/kernels/winograd_tiles.h"
#include "model/products/small_product_parts.h"

namespace sdtune::model::winograd {
namespace {

// Measured with 2 threads on an EPYC of family 25, model 1 (AVX2): 64 tiles of 640 to 640 channels take as long both
// ways, 16 of 1280 to 1280 take 50 ms in place of 117, and the gradient of their kernels 89 in place of 153. With
// AVX-512 on one of model 17 a forward pass of 10 M parameters takes 0.86 of the time, with up to 128 tiles by panels
// too.
constexpr int64_t kMostTiles = 64, kMostTilesOfGradient = 32;
// Of bfloat16, whose whole kernels are written in float32 first: by panels of up to 128 tiles a step of SD 1.5's
// sampling with guidance takes 0.92 of its time on that EPYC of model 17, and a forward pass of 10 M parameters with 4
// images 0.95.
constexpr int64_t kMostBfloat16Tiles = 128;
// Of so many panels and so much depth the 36 positions' numbers, 300 KB, stay in the second cache.
constexpr int64_t kPanels = 2, kDepth = 64;
// A panel's numbers, and a line between those of two positions: at multiples of 4096 bytes all of a kernel would fall
// into one set of the first cache.
constexpr int64_t kPanelNumbers = kDepth * kChannelGroup + 16;
static_assert(kChannelGroup == products::kPanelColumns);

// Threads share `count` pieces; run(begin, end, memory) has memory for panels of its own. Threads that allocate it
// themselves would have its pages cleared at every call.
template <class Run>
void share(int64_t count, const Run& run) {
  const int64_t shares = std::clamp<int64_t>(at::get_num_threads(), 1, count);
  const torch::Tensor memory = torch::empty({shares, kPositions, kPanels, kPanelNumbers}, torch::kFloat32);
  float* const numbers = memory.mutable_data_ptr<float>();
  at::parallel_for(0, shares, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      run(i * count / shares, (i + 1) * count / shares, numbers + i * memory.stride(0));
    }
  });
}

template <class Number>
struct Kernels {
  const Number* data;
  int64_t depth_step, column_step;
  bool flipped;

  const Number* at(int64_t depth, int64_t column) const { return data + depth * depth_step + column * column_step; }
};

// Lines of memory of the kernels that are transformed next, which are asked for while products are computed: each
// column or depth begins elsewhere, which the CPU does not foresee.
template <class Number>
class KernelLines {
 public:
  KernelLines(const Kernels<Number>& kernels, int64_t begin, int64_t depth, int64_t column, int64_t columns)
      : first_(kernels.at(begin, column)),
        step_(kernels.flipped ? kernels.depth_step : kernels.column_step),
        in_a_row_((kernels.flipped ? columns : depth) * kTaps / kLine + 1),
        lines_((kernels.flipped ? depth : columns) * in_a_row_) {}

  void prefetch_part(int64_t part, int64_t parts) const {
    for (int64_t i = lines_ * part / parts; i < lines_ * (part + 1) / parts; ++i) {
      __builtin_prefetch(first_ + i / in_a_row_ * step_ + i % in_a_row_ * kLine, 0, 2);
    }
  }

 private:
  static constexpr int64_t kLine = 64 / sizeof(Number);  // numbers
  const Number* first_;
  int64_t step_, in_a_row_, lines_;
};

// Sums of the panels [first, first + count).
class PanelSums {
 public:
  PanelSums(const torch::Tensor& maps, const torch::Tensor& sums, Vectors vectors)
      : vectors_(vectors),
        multiply_panel_(products::multiply_panel_by(vectors)),
        maps_(maps.const_data_ptr<float>()),
        sums_(sums.mutable_data_ptr<float>()),
        tiles_(maps.size(1)),
        depth_(maps.size(2)),
        columns_(sums.size(2)) {}

  template <class Number>
  void compute(const Kernels<Number>& kernels, int64_t first, int64_t count, float* memory) const {
    for (int64_t begin = 0; begin < depth_; begin += kDepth) {
      const int64_t depth = std::min(kDepth, depth_ - begin), end = begin + depth;
      for (int64_t i = 0; i < count; ++i) {
        transform_panel(PanelKernels<Number>{kernels.at(begin, (first + i) * kChannelGroup), depth, kernels.depth_step,
                                             kernels.column_step},
                        kernels.flipped, {memory + i * kPanelNumbers, kPanels * kPanelNumbers});
      }
      const KernelLines<Number> next =
          end < depth_
              ? KernelLines<Number>(kernels, end, std::min(kDepth, depth_ - end), first * kChannelGroup,
                                    count * kChannelGroup)
              : KernelLines<Number>(kernels, 0, std::min(kDepth, depth_),
                                    std::min((first + count) * kChannelGroup, columns_ - count * kChannelGroup),
                                    count * kChannelGroup);
      for (int64_t i = 0; i < kPositions * count; ++i) {
        next.prefetch_part(i, kPositions * count);
        add_panel(i / count, first, i % count, begin, depth, memory);
      }
    }
  }

 private:
  void transform_panel(const PanelKernels<float>& kernels, bool flipped, Positions out) const {
    transforms(vectors_).kernel_panel(kernels, flipped, out);
  }
  void transform_panel(const PanelKernels<c10::BFloat16>& kernels, bool flipped, Positions out) const {
    transforms(vectors_).kernel_panel_bfloat16(kernels, flipped, out);
  }

  void add_panel(int64_t position, int64_t first, int64_t i, int64_t begin, int64_t depth, const float* memory) const {
    multiply_panel_({.rows = tiles_,
                     .depth = depth,
                     .a = {maps_ + position * tiles_ * depth_ + begin, depth_, 1},
                     .panel = memory + (position * kPanels + i) * kPanelNumbers,
                     .panel_step = kChannelGroup,
                     .out = sums_ + position * tiles_ * columns_ + (first + i) * kChannelGroup,
                     .out_step = columns_,
                     .adds = begin > 0});
  }

  Vectors vectors_;
  products::MultiplyPanel multiply_panel_;
  const float* maps_;
  float* sums_;
  int64_t tiles_, depth_, columns_;
};

// The gradients of the kernels from kChannelGroup channels that come out, [first, first + kChannelGroup), to `count`
// that go in, from `begin` on.
class KernelGradients {
 public:
  KernelGradients(const torch::Tensor& dy, const torch::Tensor& x, const torch::Tensor& gradient, Vectors vectors)
      : vectors_(vectors),
        multiply_panel_(products::multiply_panel_by(vectors)),
        dy_(dy.const_data_ptr<float>()),
        x_(x.const_data_ptr<float>()),
        gradient_(gradient.mutable_data_ptr<float>()),
        tiles_(x.size(1)),
        out_(dy.size(2)),
        in_(x.size(2)) {}

  void compute(int64_t first, int64_t begin, int64_t count, float* memory) const {
    for (int64_t position = 0; position < kPositions; ++position) {
      for (int64_t i = 0; i < count; i += kChannelGroup) {
        multiply_panel_({.rows = kChannelGroup,
                         .depth = tiles_,
                         .a = {dy_ + position * tiles_ * out_ + first, 1, out_},
                         .panel = x_ + position * tiles_ * in_ + begin + i,
                         .panel_step = in_,
                         .out = memory + position * kPanelNumbers + i,
                         .out_step = kDepth,
                         .adds = false});
      }
    }
    for (int64_t i = 0; i < kChannelGroup; ++i) {
      transforms(vectors_).kernel_gradient({memory + i * kDepth, kPanelNumbers}, count,
                                           gradient_ + ((first + i) * in_ + begin) * kTaps);
    }
  }

 private:
  Vectors vectors_;
  products::MultiplyPanel multiply_panel_;
  const float *dy_, *x_;
  float* gradient_;
  int64_t tiles_, out_, in_;
};

template <class Number>
void multiply_by(const torch::Tensor& maps, const torch::Tensor& weight, bool flipped, const torch::Tensor& sums,
                 Vectors vectors) {
  const int64_t row = weight.size(1) * kTaps;
  const Kernels<Number> kernels = {weight.const_data_ptr<Number>(), flipped ? row : kTaps, flipped ? kTaps : row,
                                   flipped};
  const PanelSums panel_sums(maps, sums, vectors);
  share(sums.size(2) / kChannelGroup, [&](int64_t begin, int64_t end, float* memory) {
    for (int64_t first = begin; first < end; first += kPanels) {
      panel_sums.compute(kernels, first, std::min(kPanels, end - first), memory);
    }
  });
}

bool makes_panels() {
  return vectors_of_this_cpu() && cpu_implementation().winograd_panels;
}

}  // namespace

bool takes_panels(int64_t tiles, torch::Dtype dtype) {
  return tiles <= (dtype == torch::kBFloat16 ? kMostBfloat16Tiles : kMostTiles) && makes_panels();
}

bool takes_panels_for_gradient(int64_t tiles) {
  return tiles <= kMostTilesOfGradient && makes_panels();
}

void multiply_by_kernels(const torch::Tensor& maps, const torch::Tensor& weight, bool flipped,
                         const torch::Tensor& sums, Vectors vectors) {
  if (weight.scalar_type() == torch::kBFloat16) {
    multiply_by<c10::BFloat16>(maps, weight, flipped, sums, vectors);
  } else {
    multiply_by<float>(maps, weight, flipped, sums, vectors);
  }
}

void write_kernel_gradient(const torch::Tensor& dy, const torch::Tensor& x, const torch::Tensor& gradient,
                           Vectors vectors) {
  const KernelGradients gradients(dy, x, gradient, vectors);
  const int64_t in = x.size(2);
  share(dy.size(2) / kChannelGroup, [&](int64_t begin, int64_t end, float* memory) {
    for (int64_t group = begin; group < end; ++group) {
      for (int64_t i = 0; i < in; i += kDepth) {
        gradients.compute(group * kChannelGroup, i, std::min(kDepth, in - i), memory);
      }
    }
  });
}

}  // namespace sdtune::model::winograd
