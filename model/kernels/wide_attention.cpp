#include "model/kernels/wide_attention.h"

#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/kernels/asks_for_gradient.h"
#include "model/kernels/attention.h"
#include "model/kernels/matrix_product.h"
#include "model/products/sizes_only.h"

namespace sdtune::model {
namespace {

constexpr int64_t kBlockRows = 512;  // queries at a time: their scores stay in the caches while softmax reads them

// q [L, d], k and v [M, d] -> [L, d], all float32; `out` is written.
void attend_one_head(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v, const torch::Tensor& out) {
  const torch::Tensor scaled = q / std::sqrt(static_cast<double>(q.size(1)));
  const torch::Tensor keys = k.t().contiguous();
  for (int64_t begin = 0; begin < q.size(0); begin += kBlockRows) {
    const int64_t rows = std::min(kBlockRows, q.size(0) - begin);
    const torch::Tensor scores = product(scaled.narrow(0, begin, rows), keys);
    out.narrow(0, begin, rows).copy_(product(torch::softmax(scores, 1), v));
  }
}

}  // namespace

bool can_attend_wide(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v) {
  const torch::Dtype dtype = q.scalar_type();
  const bool is_known = dtype == torch::kFloat32 || dtype == torch::kBFloat16;
  return q.is_cpu() && is_known && k.scalar_type() == dtype && v.scalar_type() == dtype &&
         q.size(3) > kWidestTiledHead && q.numel() > 0 && k.numel() > 0 && !is_of_sizes_only() &&
         !asks_for_gradient({q, k, v});
}

torch::Tensor attend_wide(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v) {
  RECORD_FUNCTION("sdtune::attention", std::vector<c10::IValue>({q, k, v}));
  const torch::NoGradGuard no_grad;
  torch::Tensor out = torch::empty(q.sizes(), q.options());
  const auto head_of = [](const torch::Tensor& x, int64_t image, int64_t head) {
    return x[image].select(1, head).to(torch::kFloat32).contiguous();
  };
  for (int64_t image = 0; image < q.size(0); ++image) {
    for (int64_t head = 0; head < q.size(2); ++head) {
      attend_one_head(head_of(q, image, head), head_of(k, image, head), head_of(v, image, head),
                      out[image].select(1, head));
    }
  }
  return out;
}

}  // namespace sdtune::model
