// Our kernels against plain loops on the CPU, in double where that matters. Needs a GPU and no LibTorch. One line a
// check; exit 1 where one fails. Each check also runs with a deliberately wrong value, which must fail.
#include <cmath>
#include <cstdio>
#include <functional>
#include <random>
#include <vector>

#include "model/core/draw_counter.h"
#include "model/kernels/launch.cuh"
#include "model/kernels/launchers.cuh"

namespace {

using namespace sdtune::model;

int failures = 0;

// A vector in device memory.
template <typename T>
class DeviceVector {
 public:
  explicit DeviceVector(const std::vector<T>& host) : size_(host.size()) {
    require(cudaMalloc(&data_, size_ * sizeof(T)));
    require(cudaMemcpy(data_, host.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~DeviceVector() { cudaFree(data_); }
  DeviceVector(const DeviceVector&) = delete;
  DeviceVector& operator=(const DeviceVector&) = delete;
  T* data() { return data_; }
  std::vector<T> host() const {
    std::vector<T> out(size_);
    require(cudaMemcpy(out.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
    return out;
  }

 private:
  static void require(cudaError_t status) {
    if (status == cudaSuccess) return;
    std::printf("CUDA: %s\n", cudaGetErrorString(status));
    std::exit(1);
  }
  T* data_ = nullptr;
  std::size_t size_;
};

double relative_error(const std::vector<float>& got, const std::vector<double>& want) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    difference += (got[i] - want[i]) * (got[i] - want[i]);
    norm += want[i] * want[i];
  }
  return std::sqrt(difference / std::max(norm, 1e-30));
}

void expect_near(const char* name, const std::vector<float>& got, std::vector<double> want, double tolerance) {
  const double error = relative_error(got, want);
  for (std::size_t i = 0; i < want.size(); i += 2) want[i] *= 1.01;  // the mutant
  const double mutant = relative_error(got, want);
  const bool good = error <= tolerance && mutant > tolerance;
  std::printf("%-24s %s relative error %.2e (allowed %.0e, mutant %.2e)\n", name, good ? "ok  " : "FAIL", error,
              tolerance, mutant);
  failures += good ? 0 : 1;
}

std::vector<float> random_numbers(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(count);
  for (float& number : numbers) number = normal(generator);
  return numbers;
}

void check_philox() {
  const std::int64_t row_size = 10007;
  const DrawCounter counters[] = {draw_counter(0, 5, 7, false), draw_counter(2, 5, 8, true)};
  std::vector<std::uint32_t> words{42, 1};
  for (const DrawCounter& c : counters) words.insert(words.end(), {c.sample_low, c.step_low, c.high});
  DeviceVector<std::uint32_t> device_words(words);
  DeviceVector<float> out(std::vector<float>(2 * row_size));
  launch_philox_normal(out.data(), 2, row_size, device_words.data(), nullptr);
  const std::vector<float> got = out.host();
  std::int64_t different = 0;
  for (std::int64_t row = 0; row < 2; ++row) {
    for (std::int64_t i = 0; i < row_size; ++i) {
      float four[4];
      normal_block(draw_block(42 | (1ull << 32), counters[row], static_cast<std::uint32_t>(i / 4)), four);
      different += got[row * row_size + i] != four[i % 4] ? 1 : 0;
    }
  }
  std::printf("%-24s %s %lld of %lld numbers differ in a bit\n", "philox_normal", different == 0 ? "ok  " : "FAIL",
              static_cast<long long>(different), static_cast<long long>(2 * row_size));
  failures += different == 0 ? 0 : 1;
}

void check_adamw_and_norm() {
  const std::size_t count = 50001;
  const std::vector<float> w = random_numbers(count, 1), g = random_numbers(count, 2), m = random_numbers(count, 3);
  std::vector<float> v = random_numbers(count, 4);
  for (float& value : v) value *= value;
  DeviceVector<float> weight(w), gradient(g), master(w), first(m), second(v);
  const CudaParameter parameter{weight.data(), gradient.data(), master.data(),
                                first.data(),  second.data(),   static_cast<std::int64_t>(count)};
  DeviceVector<CudaParameter> parameters({parameter});
  const CudaAdamWConstants c{0.9f, 0.999f, 1e-8f, 0.1f};
  const CudaAdamWStep s{1e-2f, 1.0f - 0.81f, 1.0f - 0.998001f, 0.5f, 0};
  DeviceVector<CudaAdamWStep> step({s});
  DeviceVector<double> sum({0.0});
  DeviceVector<std::int32_t> found_inf({0});
  const auto largest = static_cast<std::int64_t>(count);
  launch_sum_of_squares(parameters.data(), 1, largest, CudaType::kFloat32, sum.data(), found_inf.data(), nullptr);
  launch_adamw(parameters.data(), 1, largest, CudaType::kFloat32, CudaType::kFloat32, c, step.data(), nullptr);
  std::vector<double> want(count);
  double squares = 0;
  for (std::size_t i = 0; i < count; ++i) {
    squares += static_cast<double>(g[i]) * g[i];
    const double grad = g[i] * 0.5;
    const double mean = m[i] * 0.9 + 0.1 * grad;
    const double square = v[i] * 0.999 + 0.001 * grad * grad;
    const double root = std::sqrt(square) / std::sqrt(static_cast<double>(s.bias_correction2));
    want[i] = w[i] * (1 - 1e-2 * 0.1) - 1e-2 / s.bias_correction1 * mean / (root + 1e-8);
  }
  expect_near("adamw", weight.host(), want, 1e-5);
  expect_near("sum_of_squares", {static_cast<float>(sum.host()[0])}, {squares}, 1e-5);
  failures += found_inf.host()[0];
}

void check_geglu() {
  const std::int64_t rows = 37, width = 65;
  const std::vector<float> x = random_numbers(rows * width * 2, 5), dy = random_numbers(rows * width, 6);
  DeviceVector<float> in(x), grad_y(dy), y(std::vector<float>(rows * width)), grad_x(x);
  launch_geglu_forward(in.data(), y.data(), rows, width, CudaType::kFloat32, nullptr);
  launch_geglu_backward(grad_y.data(), in.data(), grad_x.data(), rows, width, CudaType::kFloat32, nullptr);
  std::vector<double> want(rows * width), want_grad(x.size());
  for (std::int64_t i = 0; i < rows * width; ++i) {
    const std::int64_t at = i / width * 2 * width + i % width;
    const double gate = x[at + width];
    const double cdf = 0.5 * (1 + std::erf(gate / std::sqrt(2.0)));
    want[i] = x[at] * gate * cdf;
    want_grad[at] = dy[i] * gate * cdf;
    want_grad[at + width] = dy[i] * x[at] * (cdf + gate * std::exp(-gate * gate / 2) / std::sqrt(2 * M_PI));
  }
  expect_near("geglu forward", y.host(), want, 1e-5);
  expect_near("geglu backward", grad_x.host(), want_grad, 1e-5);
}

// y and the gradient of sum(dy * y) by the definition, in double.
struct GroupNormReference {
  std::vector<double> y, grad_x, grad_weight, grad_bias;
};

GroupNormReference group_norm_reference(const std::vector<float>& x, const std::vector<float>& w,
                                        const std::vector<float>& b, const std::vector<float>& dy,
                                        const CudaGroupNorm& s) {
  GroupNormReference r{std::vector<double>(x.size()), std::vector<double>(x.size()), std::vector<double>(s.channels),
                       std::vector<double>(s.channels)};
  const std::int64_t width = s.channels / s.groups, count = width * s.spatial;
  for (std::int64_t group = 0; group < s.batch * s.groups; ++group) {
    const auto at = [&](std::int64_t i) {
      const std::int64_t image = group / s.groups, channel = group % s.groups * width + i / s.spatial;
      return s.channels_last ? (image * s.spatial + i % s.spatial) * s.channels + channel : group * count + i;
    };
    double mean = 0, variance = 0, sum = 0, product = 0;
    for (std::int64_t i = 0; i < count; ++i) mean += x[at(i)] / static_cast<double>(count);
    for (std::int64_t i = 0; i < count; ++i) variance += std::pow(x[at(i)] - mean, 2) / static_cast<double>(count);
    const double rstd = 1 / std::sqrt(variance + s.epsilon);
    std::vector<double> scaled(count);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t c = group % s.groups * width + i / s.spatial;
      const double n = (x[at(i)] - mean) * rstd, z = n * w[c] + b[c], sig = 1 / (1 + std::exp(-z));
      r.y[at(i)] = s.silu ? z * sig : z;
      const double grad = dy[at(i)] * (s.silu ? sig * (1 + z * (1 - sig)) : 1);
      r.grad_weight[c] += grad * n;
      r.grad_bias[c] += grad;
      scaled[i] = grad * w[c];
      sum += scaled[i] / count;
      product += scaled[i] * n / count;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      r.grad_x[at(i)] = rstd * (scaled[i] - sum - (x[at(i)] - mean) * rstd * product);
    }
  }
  return r;
}

void check_group_norm(bool silu, bool channels_last) {
  const CudaGroupNorm shape{2, 64, 45, 8, 1e-5f, silu, channels_last};
  const auto size = static_cast<std::size_t>(shape.batch * shape.channels * shape.spatial);
  const std::vector<float> x = random_numbers(size, 7), dy = random_numbers(size, 8), w = random_numbers(64, 9),
                           b = random_numbers(64, 10);
  const GroupNormReference want = group_norm_reference(x, w, b, dy, shape);
  DeviceVector<float> in(x), grad_y(dy), weight(w), bias(b), y(x), grad_x(x), mean(std::vector<float>(16)),
      rstd(std::vector<float>(16)), grad_weight(std::vector<float>(64)), grad_bias(std::vector<float>(64));
  launch_group_norm_forward(in.data(), weight.data(), bias.data(), y.data(), mean.data(), rstd.data(), shape,
                            CudaType::kFloat32, nullptr);
  launch_group_norm_backward(grad_y.data(), in.data(), weight.data(), bias.data(), mean.data(), rstd.data(),
                             grad_x.data(), grad_weight.data(), grad_bias.data(), shape, CudaType::kFloat32, nullptr);
  std::printf("group_norm silu %d channels_last %d\n", silu, channels_last);
  expect_near("  forward", y.host(), want.y, 1e-5);
  expect_near("  grad x", grad_x.host(), want.grad_x, 1e-5);
  expect_near("  grad weight", grad_weight.host(), want.grad_weight, 1e-5);
  expect_near("  grad bias", grad_bias.host(), want.grad_bias, 1e-5);
}

}  // namespace

int main() {
  check_philox();
  check_adamw_and_norm();
  check_geglu();
  for (const bool silu : {false, true}) {
    for (const bool channels_last : {false, true}) check_group_norm(silu, channels_last);
  }
  std::printf("%d checks failed\n", failures);
  return failures == 0 ? 0 : 1;
}
