#include "model/kernels/geglu.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include "model/kernels/geglu_cuda.h"
#include "model/products/sizes_only.h"
#include "model/products/vector_math.h"

namespace sdtune::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <class T>
SDTUNE_INLINE void forward_row(const T* __restrict x, T* __restrict y, int64_t width) {
  for (int64_t j = 0; j < width; ++j) {
    const float gate = load(x + width + j);
    store(y + j, load(x + j) * gate * fast_normal(gate).cumulative);
  }
}

template <class T>
SDTUNE_INLINE void backward_row(const T* __restrict x, const T* __restrict dy, T* __restrict dx, int64_t width) {
  for (int64_t j = 0; j < width; ++j) {
    const float gate = load(x + width + j);
    const NormalValue normal = fast_normal(gate);
    const float gradient = load(dy + j);
    store(dx + j, gradient * gate * normal.cumulative);
    store(dx + width + j, gradient * load(x + j) * (normal.cumulative + gate * normal.density));
  }
}

// target_clones takes no templates, so each instance is written out.
SDTUNE_CPU_CLONES void forward_of(const float* x, float* y, int64_t width) {
  forward_row(x, y, width);
}
SDTUNE_CPU_CLONES void forward_of(const c10::BFloat16* x, c10::BFloat16* y, int64_t width) {
  forward_row(x, y, width);
}
SDTUNE_CPU_CLONES void backward_of(const float* x, const float* dy, float* dx, int64_t width) {
  backward_row(x, dy, dx, width);
}
SDTUNE_CPU_CLONES void backward_of(const c10::BFloat16* x, const c10::BFloat16* dy, c10::BFloat16* dx, int64_t width) {
  backward_row(x, dy, dx, width);
}

// Rows that one thread takes at least.
constexpr int64_t kGrain = 8;

template <class T>
void run_forward(const torch::Tensor& x, const torch::Tensor& y) {
  if (is_of_sizes_only() || y.numel() == 0) return;
  const int64_t width = y.size(-1);
  const auto* in = x.const_data_ptr<T>();
  auto* out = y.mutable_data_ptr<T>();
  at::parallel_for(0, y.numel() / width, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) forward_of(in + row * 2 * width, out + row * width, width);
  });
}

template <class T>
void run_backward(const torch::Tensor& x, const torch::Tensor& dy, const torch::Tensor& dx) {
  if (is_of_sizes_only() || dy.numel() == 0) return;
  const int64_t width = dy.size(-1);
  const auto* in = x.const_data_ptr<T>();
  const auto* gradient = dy.const_data_ptr<T>();
  auto* out = dx.mutable_data_ptr<T>();
  at::parallel_for(0, dy.numel() / width, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      backward_of(in + row * 2 * width, gradient + row * width, out + row * 2 * width, width);
    }
  });
}

struct FusedGeglu : torch::autograd::Function<FusedGeglu> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x) {
    const torch::Tensor rows = x.contiguous();
    context->save_for_backward({rows});
    std::vector<int64_t> shape = rows.sizes().vec();
    shape.back() /= 2;
    const torch::Tensor y = torch::empty(shape, rows.options());
    rows.scalar_type() == torch::kFloat32 ? run_forward<float>(rows, y) : run_forward<c10::BFloat16>(rows, y);
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const torch::Tensor x = context->get_saved_variables()[0];
    const torch::Tensor dy = gradients[0].contiguous();
    const torch::Tensor dx = torch::empty_like(x);
    x.scalar_type() == torch::kFloat32 ? run_backward<float>(x, dy, dx) : run_backward<c10::BFloat16>(x, dy, dx);
    return {dx};
  }
};

}  // namespace

torch::Tensor geglu(const torch::Tensor& x) {
  TORCH_CHECK(x.dim() > 0 && x.size(-1) % 2 == 0, "geglu: the last axis has two halves, got ", x.sizes());
  const bool fused = x.is_cpu() && (x.scalar_type() == torch::kFloat32 || x.scalar_type() == torch::kBFloat16);
  if (const CudaTable* kernels = geglu_kernels(x)) return geglu_by_kernel(*kernels, x);
  return fused ? FusedGeglu::apply(x) : geglu_by_library(x);
}

}  // namespace sdtune::model
