#include "model/kernels/group_norm_cpu.h"

#include <cmath>
#include <vector>

#include "model/kernels/group_norm_pieces.h"

namespace sdtune::model {
namespace {

struct FloatParameters {
  explicit FloatParameters(const GroupNormArguments& arguments)
      : weight(arguments.weight.to(torch::kFloat32).contiguous()),
        bias(arguments.bias.to(torch::kFloat32).contiguous()),
        offset(arguments.offset.defined() ? arguments.offset.to(torch::kFloat32).contiguous() : torch::Tensor()) {}
  const float* offsets() const { return offset.defined() ? offset.const_data_ptr<float>() : nullptr; }

  torch::Tensor weight, bias, offset;
};

void finish_statistics(const MapLayout& layout, const double* square, const FloatParameters& parameters, double eps,
                       const GroupNormStatistics& out) {
  const int64_t width = layout.channels / layout.groups;
  const auto pixels = static_cast<double>(layout.pixels);
  const float* offsets = parameters.offsets();
  const auto* weight = parameters.weight.const_data_ptr<float>();
  const auto* bias = parameters.bias.const_data_ptr<float>();
  const auto* sums = out.sum.const_data_ptr<double>();
  auto* scales = out.scale.mutable_data_ptr<float>();
  auto* shifts = out.shift.mutable_data_ptr<float>();
  for (int64_t g = 0; g < layout.batch * layout.groups; ++g) {
    double sum = 0.0, sum_of_squares = 0.0;
    for (int64_t i = g * width; i < (g + 1) * width; ++i) {
      const double offset = offsets ? offsets[i] : 0.0;
      sum += sums[i] + pixels * offset;
      sum_of_squares += square[i] + 2.0 * offset * sums[i] + pixels * offset * offset;
    }
    const double count = pixels * static_cast<double>(width);
    const double mean = sum / count;
    // NaN must stay NaN: std::max(NaN, 0.0) is NaN, the other order is not.
    const double rstd = 1.0 / std::sqrt(std::max(sum_of_squares / count - mean * mean, 0.0) + eps);
    out.mean.mutable_data_ptr<double>()[g] = mean;
    out.rstd.mutable_data_ptr<double>()[g] = rstd;
    for (int64_t i = g * width; i < (g + 1) * width; ++i) {
      const int64_t channel = i % layout.channels;
      const double scale = rstd * weight[channel];
      scales[i] = static_cast<float>(scale);
      shifts[i] = static_cast<float>(bias[channel] + ((offsets ? offsets[i] : 0.0) - mean) * scale);
    }
  }
}

template <class T>
GroupNormStatistics statistics(const T* x, const MapLayout& layout, const FloatParameters& parameters, double eps) {
  const GroupNormStatistics out = {.sum = torch::zeros({layout.batch, layout.channels}, torch::kFloat64),
                                   .mean = torch::empty({layout.batch, layout.groups}, torch::kFloat64),
                                   .rstd = torch::empty({layout.batch, layout.groups}, torch::kFloat64),
                                   .scale = torch::empty({layout.batch, layout.channels}, torch::kFloat32),
                                   .shift = torch::empty({layout.batch, layout.channels}, torch::kFloat32)};
  auto* sum = out.sum.mutable_data_ptr<double>();
  std::vector<double> square(static_cast<size_t>(layout.batch * layout.channels));
  for_each_piece(layout, [&](const PieceTiles& piece) {
    double sums[kMaxTileWidth] = {}, squares[kMaxTileWidth] = {};
    for (int i = 0; i < 2; ++i) tile_moments(x + piece.begin[i], piece.tiles[i], sums, squares);
    piece.add(sums, sum);
    piece.add(squares, square.data());
  });
  finish_statistics(layout, square.data(), parameters, eps, out);
  return out;
}

// scale and shift as columns of one piece.
struct PieceAffine {
  PieceAffine(const PieceTiles& piece, const GroupNormStatistics& statistics, bool silu)
      : affine{piece.columns(statistics.scale.const_data_ptr<float>(), scales),
               piece.columns(statistics.shift.const_data_ptr<float>(), shifts), silu} {}
  PieceAffine(const PieceAffine&) = delete;

  float scales[kFoldedTileWidth], shifts[kFoldedTileWidth];
  TileAffine affine;
};

template <class T>
void run_forward(const T* x, T* y, const MapLayout& layout, const GroupNormStatistics& statistics, bool silu) {
  for_each_piece(layout, [&](const PieceTiles& piece) {
    const PieceAffine columns(piece, statistics, silu);
    for (int i = 0; i < 2; ++i) tile_apply(x + piece.begin[i], y + piece.begin[i], piece.tiles[i], columns.affine);
  });
}

// Of dz, the gradient before the activation: per (image, channel), over the pixels.
struct GradientSums {
  std::vector<double> dz;       // sum of dz
  std::vector<double> dz_norm;  // sum of dz * normalised x
};

template <class T>
GradientSums gradient_sums(const T* x, const T* dy, const MapLayout& layout, const GroupNormStatistics& statistics,
                           const FloatParameters& parameters, bool silu) {
  const auto columns = static_cast<size_t>(layout.batch * layout.channels);
  GradientSums sums = {std::vector<double>(columns), std::vector<double>(columns)};
  for_each_piece(layout, [&](const PieceTiles& piece) {
    const PieceAffine column(piece, statistics, silu);
    double dz[kMaxTileWidth] = {}, dz_x[kMaxTileWidth] = {};
    for (int i = 0; i < 2; ++i) {
      tile_gradient_sums(x + piece.begin[i], dy + piece.begin[i], piece.tiles[i], column.affine, dz, dz_x);
    }
    piece.add(dz, sums.dz.data());
    piece.add(dz_x, sums.dz_norm.data());
  });
  const int64_t width = layout.channels / layout.groups;
  const float* offsets = parameters.offsets();
  for (int64_t i = 0; i < layout.batch * layout.channels; ++i) {
    const double mean = statistics.mean.const_data_ptr<double>()[i / width];
    const double rstd = statistics.rstd.const_data_ptr<double>()[i / width];
    sums.dz_norm[i] = (sums.dz_norm[i] + ((offsets ? offsets[i] : 0.0) - mean) * sums.dz[i]) * rstd;
  }
  return sums;
}

// dx = by_dz * dz + by_x * x + constant, per (image, channel).
struct GradientColumns {
  std::vector<float> by_dz, by_x, constant;
  torch::Tensor offset_gradient;  // float32 [B, C]: the sum of dx over the pixels, which costs nothing here
};

GradientColumns gradient_columns(const MapLayout& layout, const GroupNormStatistics& statistics,
                                 const FloatParameters& parameters, const GradientSums& sums) {
  const auto columns = static_cast<size_t>(layout.batch * layout.channels);
  GradientColumns out = {std::vector<float>(columns), std::vector<float>(columns), std::vector<float>(columns),
                         torch::empty({layout.batch, layout.channels}, torch::kFloat32)};
  const int64_t width = layout.channels / layout.groups;
  const auto pixels = static_cast<double>(layout.pixels);
  const double count = pixels * static_cast<double>(width);
  const auto* weight = parameters.weight.const_data_ptr<float>();
  const auto* sum_of_x = statistics.sum.const_data_ptr<double>();
  const float* offsets = parameters.offsets();
  for (int64_t g = 0; g < layout.batch * layout.groups; ++g) {
    const double mean = statistics.mean.const_data_ptr<double>()[g];
    const double rstd = statistics.rstd.const_data_ptr<double>()[g];
    double mean_dnorm = 0.0, mean_dnorm_norm = 0.0;  // of the gradient of the normalised values, over the group
    for (int64_t i = g * width; i < (g + 1) * width; ++i) {
      mean_dnorm += weight[i % layout.channels] * sums.dz[i] / count;
      mean_dnorm_norm += weight[i % layout.channels] * sums.dz_norm[i] / count;
    }
    for (int64_t i = g * width; i < (g + 1) * width; ++i) {
      const double by_dz = rstd * weight[i % layout.channels];
      const double by_x = -rstd * rstd * mean_dnorm_norm;
      const double constant = -rstd * mean_dnorm + by_x * ((offsets ? offsets[i] : 0.0) - mean);
      out.by_dz[i] = static_cast<float>(by_dz);
      out.by_x[i] = static_cast<float>(by_x);
      out.constant[i] = static_cast<float>(constant);
      out.offset_gradient.mutable_data_ptr<float>()[i] =
          static_cast<float>(by_dz * sums.dz[i] + by_x * sum_of_x[i] + constant * pixels);
    }
  }
  return out;
}

template <class T>
void run_input_gradient(const T* x, const T* dy, T* dx, const MapLayout& layout, const GroupNormStatistics& statistics,
                        const GradientColumns& gradient, bool silu) {
  for_each_piece(layout, [&](const PieceTiles& piece) {
    const PieceAffine column(piece, statistics, silu);
    float by_dz[kFoldedTileWidth], by_x[kFoldedTileWidth], constant[kFoldedTileWidth];
    const TileGradient by = {piece.columns(gradient.by_dz.data(), by_dz), piece.columns(gradient.by_x.data(), by_x),
                             piece.columns(gradient.constant.data(), constant)};
    for (int i = 0; i < 2; ++i) {
      const int64_t at = piece.begin[i];
      tile_gradient(x + at, dy + at, dx + at, piece.tiles[i], column.affine, by);
    }
  });
}

// weight's and bias's: the sums over the images.
void sum_over_images(const MapLayout& layout, const GradientSums& sums, const GroupNormGradients& out) {
  auto* weight = out.weight.mutable_data_ptr<float>();
  auto* bias = out.bias.mutable_data_ptr<float>();
  for (int64_t channel = 0; channel < layout.channels; ++channel) {
    double weight_sum = 0.0, bias_sum = 0.0;
    for (int64_t i = channel; i < layout.batch * layout.channels; i += layout.channels) {
      weight_sum += sums.dz_norm[i];
      bias_sum += sums.dz[i];
    }
    weight[channel] = static_cast<float>(weight_sum);
    bias[channel] = static_cast<float>(bias_sum);
  }
}

// Calls `work` with a null pointer of the tensor's element type.
template <class Work>
auto with_element_type(const torch::Tensor& x, const Work& work) {
  if (x.scalar_type() == torch::kBFloat16) return work(static_cast<const c10::BFloat16*>(nullptr));
  TORCH_INTERNAL_ASSERT(x.scalar_type() == torch::kFloat32);
  return work(static_cast<const float*>(nullptr));
}

}  // namespace

GroupNormStatistics group_norm_cpu(const torch::Tensor& x, const torch::Tensor& y,
                                   const GroupNormArguments& arguments) {
  const MapLayout layout(x, arguments.groups);
  const FloatParameters parameters(arguments);
  return with_element_type(x, [&]<class T>(const T*) {
    const GroupNormStatistics found = statistics(x.const_data_ptr<T>(), layout, parameters, arguments.eps);
    run_forward(x.const_data_ptr<T>(), y.mutable_data_ptr<T>(), layout, found, arguments.silu);
    return found;
  });
}

GroupNormGradients group_norm_cpu_backward(const torch::Tensor& x, const torch::Tensor& dy, const torch::Tensor& dx,
                                           const GroupNormArguments& arguments, const GroupNormStatistics& statistics) {
  const MapLayout layout(x, arguments.groups);
  const FloatParameters parameters(arguments);
  return with_element_type(x, [&]<class T>(const T*) {
    const auto* in = x.const_data_ptr<T>();
    const auto* gradient = dy.const_data_ptr<T>();
    const GradientSums sums = gradient_sums(in, gradient, layout, statistics, parameters, arguments.silu);
    const GradientColumns columns = gradient_columns(layout, statistics, parameters, sums);
    run_input_gradient(in, gradient, dx.mutable_data_ptr<T>(), layout, statistics, columns, arguments.silu);
    GroupNormGradients out = {.weight = torch::empty({layout.channels}, torch::kFloat32),
                              .bias = torch::empty({layout.channels}, torch::kFloat32),
                              .offset = columns.offset_gradient};
    sum_over_images(layout, sums, out);
    return out;
  });
}

}  // namespace sdtune::model
