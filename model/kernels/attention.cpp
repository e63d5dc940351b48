#include "model/kernels/attention.h"

#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "model/core/cpu_implementation.h"
#include "model/kernels/asks_for_gradient.h"
#include "model/kernels/attention_tiles.h"
#include "model/kernels/attention_work.h"
#include "model/products/sizes_only.h"

namespace sdtune::model {
namespace {

using attention::Rows;
using attention::Sizes;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Sizes sizes_of(const torch::Tensor& q, const torch::Tensor& k, bool causal) {
  return {.queries = q.size(1), .keys = k.size(1), .head = q.size(3), .causal = causal};
}

// Head `index` of all samples of x [B, N, H, d].
Rows rows_of(const torch::Tensor& x, int64_t index) {
  const int64_t heads = x.size(2), offset = index / heads * x.stride(0) + index % heads * x.stride(2);
  return {.data = static_cast<char*>(x.data_ptr()) + offset * x.element_size(),
          .step = x.stride(1),
          .is_bfloat16 = x.scalar_type() == torch::kBFloat16};
}

torch::Tensor dense_like(const torch::Tensor& x) {
  return torch::empty(x.sizes(), x.options().requires_grad(false));
}

torch::Tensor with_dense_heads(const torch::Tensor& x) {
  return x.stride(3) == 1 ? x : x.contiguous();
}

// Keys and values of each of q's samples and heads, which the passes read without looking: LibTorch spreads others, or
// refuses them.
bool belong_together(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v) {
  return q.dim() == 4 && k.dim() == 4 && k.sizes() == v.sizes() && k.size(0) == q.size(0) && k.size(2) == q.size(2) &&
         k.size(3) == q.size(3);
}

// Gives each thread scratch memory and calls run(index, scratch) for each of `count` parts of the work.
template <class Run>
void for_each_part(int64_t count, int64_t scratch_floats, const Run& run) {
  at::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    const torch::Tensor scratch = torch::empty({scratch_floats}, torch::kFloat32);
    for (int64_t i = begin; i < end; ++i) run(i, scratch.mutable_data_ptr<float>());
  });
}

struct Passes {
  bool causal;
  Vectors forward, backward;
  bool is_short;  // the exponentials of the forward pass by pairs
};

// y [B, L, H, d]; `log_sums` [B H, L].
torch::Tensor forward_pass(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                           const torch::Tensor& log_sums, const Passes& passes) {
  const Sizes sizes = sizes_of(q, k, passes.causal);
  torch::Tensor y = dense_like(q);
  const int64_t heads = q.size(0) * q.size(2), blocks = (sizes.queries + attention::kQueries - 1) / attention::kQueries;
  // As many blocks together as leave each thread work; how many they are changes no bit.
  const int64_t parts_of_head = std::max<int64_t>(1, 2 * at::get_num_threads() / heads);
  const int64_t together = std::clamp<int64_t>(blocks / parts_of_head, 1, attention::blocks_in_cache(sizes));
  const int64_t parts = (blocks + together - 1) / together;
  const attention::ForwardBlocks run = attention::forward_blocks(passes.forward, passes.is_short);
  for_each_part(heads * parts, attention::forward_scratch(sizes, together), [&](int64_t part, float* scratch) {
    const int64_t head = part / parts, first = part % parts * together * attention::kQueries;
    run(sizes,
        {.q = rows_of(q, head),
         .k = rows_of(k, head),
         .v = rows_of(v, head),
         .y = rows_of(y, head),
         .log_sums = log_sums.mutable_data_ptr<float>() + head * sizes.queries},
        first, std::min(together * attention::kQueries, sizes.queries - first), scratch);
  });
  return y;
}

variable_list backward_pass(const variable_list& saved, const torch::Tensor& dy, bool causal, Vectors vectors) {
  const torch::Tensor &q = saved[0], &k = saved[1], &v = saved[2], &y = saved[3], &log_sums = saved[4];
  const Sizes sizes = sizes_of(q, k, causal);
  const torch::Tensor dq = dense_like(q), dk = dense_like(k), dv = dense_like(v);
  const attention::BackwardOfHead run = attention::backward_of_head(vectors);
  for_each_part(q.size(0) * q.size(2), attention::backward_scratch(sizes, vectors), [&](int64_t head, float* scratch) {
    run(sizes,
        {.q = rows_of(q, head),
         .k = rows_of(k, head),
         .v = rows_of(v, head),
         .y = rows_of(y, head),
         .dy = rows_of(dy, head),
         .dq = rows_of(dq, head),
         .dk = rows_of(dk, head),
         .dv = rows_of(dv, head),
         .log_sums = log_sums.const_data_ptr<float>() + head * sizes.queries},
        scratch);
  });
  return {dq, dk, dv, torch::Tensor()};
}

struct TiledAttention : torch::autograd::Function<TiledAttention> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& q, const torch::Tensor& k,
                               const torch::Tensor& v, const Passes& passes) {
    RECORD_FUNCTION("sdtune::attention", std::vector<c10::IValue>({q, k, v, passes.causal}));
    const torch::Tensor log_sums = torch::empty({q.size(0) * q.size(2), q.size(1)}, torch::kFloat32);
    const variable_list dense = {with_dense_heads(q), with_dense_heads(k), with_dense_heads(v)};
    torch::Tensor y = forward_pass(dense[0], dense[1], dense[2], log_sums, passes);
    context->saved_data["causal"] = passes.causal;
    context->saved_data["vectors"] = static_cast<int64_t>(passes.backward);
    context->save_for_backward({dense[0], dense[1], dense[2], y, log_sums});
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const bool causal = context->saved_data["causal"].toBool();
    RECORD_FUNCTION("sdtune::attention_backward", std::vector<c10::IValue>({saved[0], saved[1], saved[2], causal}));
    return backward_pass(saved, with_dense_heads(gradients[0]), causal,
                         static_cast<Vectors>(context->saved_data["vectors"].toInt()));
  }
};

}  // namespace

bool can_attend_in_tiles(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v) {
  const torch::Dtype dtype = q.scalar_type();
  const bool is_known = dtype == torch::kFloat32 || dtype == torch::kBFloat16;
  const bool takes_wide = dtype == torch::kBFloat16 && can_multiply_bfloat16_pairs() && !asks_for_gradient({q, k, v});
  return q.is_cpu() && is_known && k.scalar_type() == dtype && v.scalar_type() == dtype && belong_together(q, k, v) &&
         q.size(3) % 4 == 0 && q.size(3) <= (takes_wide ? kWidestHeadOfPairs : kWidestTiledHead) && q.numel() > 0 &&
         k.numel() > 0 && vectors_of_this_cpu() && !is_of_sizes_only();
}

torch::Tensor tiled_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v, bool causal) {
  const bool has_pairs = q.scalar_type() == torch::kBFloat16 && can_multiply_bfloat16_pairs();
  const auto by = [has_pairs](bool wanted) {
    return has_pairs && wanted ? Vectors::kAvx512Bfloat16 : vectors_of_this_cpu().value();
  };
  const CpuImplementation chosen = cpu_implementation();
  return TiledAttention::apply(q, k, v,
                               Passes{.causal = causal,
                                      .forward = by(chosen.bfloat16_pairs),
                                      .backward = by(chosen.backward_pairs),
                                      .is_short = chosen.short_exponentials});
}

torch::Tensor tiled_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v, bool causal,
                              Vectors vectors) {
  return TiledAttention::apply(q, k, v, Passes{causal, vectors, vectors, /*is_short=*/false});
}

}  // namespace sdtune::model
