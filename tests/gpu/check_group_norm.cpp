#include <cmath>

#include "tests/gpu/checks.h"

namespace sdtune::test {

namespace {

using namespace sdtune::model;

struct Case {
  std::int64_t batch, channels, spatial, groups;
  bool silu = false, channels_last = false, with_offset = false;
  CudaType type = CudaType::kFloat32;
  float mean = 1, deviation = 2;
  std::size_t misalignment = 0;

  CudaGroupNorm shape() const { return {batch, channels, spatial, groups, 1e-5f, silu, channels_last}; }
  std::string name() const {
    return std::to_string(batch) + "x" + std::to_string(channels) + "x" + std::to_string(spatial) + "/" +
           std::to_string(groups) + (silu ? " silu" : "") + (channels_last ? " nhwc" : " nchw") +
           (with_offset ? " offset " : " ") + name_of(type);
  }
  std::size_t place(std::int64_t image, std::int64_t channel, std::int64_t pixel) const {
    return static_cast<std::size_t>(channels_last ? (image * spatial + pixel) * channels + channel
                                                  : (image * channels + channel) * spatial + pixel);
  }
};

struct Inputs {
  std::vector<float> x, dy, weight, bias, offset;
};

Inputs inputs_of(const Case& c) {
  const auto size = static_cast<std::size_t>(c.batch * c.channels * c.spatial);
  const auto channels = static_cast<std::size_t>(c.channels);
  return {rounded(random_numbers(size, 7, c.deviation, c.mean), c.type), rounded(random_numbers(size, 8), c.type),
          rounded(random_numbers(channels, 9), c.type), rounded(random_numbers(channels, 10), c.type),
          c.with_offset ? rounded(random_numbers(static_cast<std::size_t>(c.batch) * channels, 11), c.type)
                        : std::vector<float>(static_cast<std::size_t>(c.batch) * channels)};
}

// y and the gradients of sum(dy * y) by the definition, in double.
struct Reference {
  std::vector<double> y, x, weight, bias, offset;
};

void add_group(const Case& c, const Inputs& in, std::int64_t image, std::int64_t group, Reference& out) {
  const std::int64_t width = c.channels / c.groups, count = width * c.spatial;
  const auto channel = [&](std::int64_t i) { return group * width + i / c.spatial; };
  const auto value = [&](std::int64_t i) {
    return double{in.x[c.place(image, channel(i), i % c.spatial)]} + in.offset[image * c.channels + channel(i)];
  };
  double mean = 0, variance = 0, sum = 0, product = 0;
  for (std::int64_t i = 0; i < count; ++i) mean += value(i) / static_cast<double>(count);
  for (std::int64_t i = 0; i < count; ++i) variance += std::pow(value(i) - mean, 2) / static_cast<double>(count);
  const double rstd = 1 / std::sqrt(variance + 1e-5f);
  std::vector<double> scaled(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::size_t at = c.place(image, channel(i), i % c.spatial);
    const auto k = static_cast<std::size_t>(channel(i));
    const double normalised = (value(i) - mean) * rstd, z = normalised * in.weight[k] + in.bias[k];
    const double sigmoid = 1 / (1 + std::exp(-z));
    out.y[at] = c.silu ? z * sigmoid : z;
    const double dz = in.dy[at] * (c.silu ? sigmoid * (1 + z * (1 - sigmoid)) : 1);
    out.weight[k] += dz * normalised;
    out.bias[k] += dz;
    scaled[i] = dz * in.weight[k];
    sum += scaled[i] / static_cast<double>(count);
    product += scaled[i] * normalised / static_cast<double>(count);
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const double dx = rstd * (scaled[i] - sum - (value(i) - mean) * rstd * product);
    out.x[c.place(image, channel(i), i % c.spatial)] = dx;
    out.offset[static_cast<std::size_t>(image * c.channels + channel(i))] += dx;
  }
}

Reference reference_of(const Case& c, const Inputs& in) {
  Reference out{std::vector<double>(in.x.size()), std::vector<double>(in.x.size()),
                std::vector<double>(in.weight.size()), std::vector<double>(in.weight.size()),
                std::vector<double>(in.offset.size())};
  for (std::int64_t image = 0; image < c.batch; ++image) {
    for (std::int64_t group = 0; group < c.groups; ++group) add_group(c, in, image, group, out);
  }
  return out;
}

struct Results {
  std::vector<float> y, x, weight, bias, offset;
  bool operator==(const Results&) const = default;
};

Results run(const Case& c, const Inputs& in) {
  const auto nan = [](std::int64_t count) { return std::vector<float>(static_cast<std::size_t>(count), NAN); };
  const CudaTable& table = *sdtune_cuda_table();
  TypedVector x(in.x, c.type, c.misalignment), weight(in.weight, c.type), bias(in.bias, c.type),
      offset(in.offset, c.type), y(in.x, c.type), dy(in.dy, c.type), dx(in.x, c.type), grad_weight(in.weight, c.type),
      grad_bias(in.weight, c.type), grad_offset(in.offset, c.type);
  DeviceVector<float> columns(nan(kGroupNormColumns * c.batch * c.channels)), rstd(nan(c.batch * c.groups));
  DeviceVector<float> workspace(nan(table.group_norm_workspace(c.shape(), c.type)));
  table.group_norm_forward({x.data(), weight.data(), bias.data(), c.with_offset ? offset.data() : nullptr, y.data(),
                            columns.data(), rstd.data(), workspace.data()},
                           c.shape(), c.type, kStream);
  table.group_norm_backward({dy.data(), x.data(), columns.data(), rstd.data(), dx.data(), grad_weight.data(),
                             grad_bias.data(), c.with_offset ? grad_offset.data() : nullptr, workspace.data()},
                            c.shape(), c.type, kStream);
  return {y.host(), dx.host(), grad_weight.host(), grad_bias.host(), grad_offset.host()};
}

struct Checks {
  Check y{"group_norm forward"}, x{"group_norm grad x"}, weight{"group_norm grad weight"}, bias{"group_norm grad bias"},
      offset{"group_norm grad offset"}, again{"group_norm same bits again"};
};

constexpr double kMutant = 0.02;  // of every second number: seen even where there are a few numbers of 16 bits

void check_case(Checks& checks, const Case& c) {
  const Inputs in = inputs_of(c);
  const Reference want = reference_of(c, in);
  const Results got = run(c, in);
  // Sums of many numbers: float32's own rounding has a floor of a few units.
  const double allowed = std::max(rounding(c.type, 2), 2e-6);
  checks.y.near(c.name(), got.y, want.y, allowed, kMutant);
  checks.x.near(c.name(), got.x, want.x, allowed, kMutant);
  checks.weight.near(c.name(), got.weight, want.weight, allowed, kMutant);
  checks.bias.near(c.name(), got.bias, want.bias, allowed, kMutant);
  // With one channel a group it is 0 but for rounding.
  if (c.with_offset && c.channels > c.groups) checks.offset.near(c.name(), got.offset, want.offset, allowed, kMutant);
}

}  // namespace

void check_group_norm() {
  Checks checks;
  const Case shapes[] = {{2, 64, 45, 8},  {1, 320, 64, 32}, {3, 40, 9, 8},    {2, 6, 49, 3},    {1, 8, 2, 2},
                         {1, 64, 700, 2}, {1, 12, 33, 1},   {1, 1040, 6, 13}, {2, 32, 1100, 32}};
  for (Case c : shapes) {
    for (const bool channels_last : {false, true}) {
      for (const CudaType type : kTypes) {
        c.channels_last = channels_last, c.type = type;
        c.silu = type != CudaType::kBFloat16, c.with_offset = type != CudaType::kFloat16;
        check_case(checks, c);
      }
      Case odd = c;
      odd.misalignment = 1, odd.silu = false, odd.type = CudaType::kFloat32;
      check_case(checks, odd);
      // The mean a thousand deviations away.
      Case far = odd;
      far.misalignment = 0, far.mean = 1000, far.deviation = 1, far.with_offset = true;
      check_case(checks, far);
      checks.again.equal(far.name(), run(far, inputs_of(far)) == run(far, inputs_of(far)));
    }
  }
}

}  // namespace sdtune::test
