#include <cmath>

#include "tests/gpu/checks.h"

namespace sdtune::test {

namespace {

using namespace sdtune::model;

void check_case(Check& forward, Check& backward, std::int64_t rows, std::int64_t width, CudaType type,
                std::size_t misalignment) {
  const auto size = static_cast<std::size_t>(rows * width);
  const std::vector<float> x = rounded(random_numbers(size * 2, 5, 1.5f), type);
  const std::vector<float> dy = rounded(random_numbers(size, 6), type);
  TypedVector in(x, type, misalignment), grad_y(dy, type), y(dy, type), grad_x(x, type, misalignment);
  sdtune_cuda_table()->geglu_forward(in.data(), y.data(), rows, width, type, kStream);
  sdtune_cuda_table()->geglu_backward(grad_y.data(), in.data(), grad_x.data(), rows, width, type, kStream);
  std::vector<double> want(size), want_grad(size * 2);
  for (std::size_t i = 0; i < size; ++i) {
    const auto w = static_cast<std::size_t>(width);
    const std::size_t at = i / w * 2 * w + i % w;
    const double gate = x[at + w], cdf = 0.5 * std::erfc(-gate / std::sqrt(2.0));
    want[i] = x[at] * gate * cdf;
    want_grad[at] = dy[i] * gate * cdf;
    want_grad[at + w] = dy[i] * x[at] * (cdf + gate * std::exp(-gate * gate / 2) / std::sqrt(2 * M_PI));
  }
  const std::string of = std::to_string(rows) + " x " + std::to_string(width) + " " + name_of(type);
  forward.near(of, y.host(), want, rounding(type, 2));
  backward.near(of, grad_x.host(), want_grad, rounding(type, 2));
}

}  // namespace

void check_geglu() {
  Check forward("geglu forward"), backward("geglu backward");
  for (const CudaType type : kTypes) {
    check_case(forward, backward, 1, 1, type, 0);
    check_case(forward, backward, 37, 65, type, 0);   // no whole packs
    check_case(forward, backward, 29, 128, type, 0);  // whole packs
    check_case(forward, backward, 9, 64, type, 1);    // packs that are not aligned
  }
}

}  // namespace sdtune::test
