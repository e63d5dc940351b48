#include "model/nn/attention.h"

#include "model/core/check.h"
#include "model/core/cpu_implementation.h"
#include "model/kernels/attention.h"
#include "model/kernels/wide_attention.h"

namespace sdtune::model {
namespace {

bool takes_tiles(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v, bool causal) {
  if (!can_attend_in_tiles(q, k, v)) return false;  // what is computed elsewhere asks for no table of processors
  const CpuImplementation chosen = cpu_implementation();
  return chosen.tiled_attention && (chosen.causal_tiles || !causal) && (chosen.heads_of_four || q.size(3) % 8 == 0) &&
         (chosen.bfloat16_pairs || q.size(3) <= kWidestTiledHead);
}

}  // namespace

torch::Tensor attend(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v, bool causal, bool upcast) {
  if (!upcast && takes_tiles(q, k, v, causal)) return tiled_attention(q, k, v, causal);
  if (!causal && !upcast && can_attend_wide(q, k, v)) return attend_wide(q, k, v);
  const torch::Dtype dtype = v.scalar_type();
  const auto prepare = [upcast](const torch::Tensor& x) {
    return (upcast ? x.to(torch::kFloat32) : x).transpose(1, 2);
  };
  const torch::Tensor out =
      torch::scaled_dot_product_attention(prepare(q), prepare(k), prepare(v), std::nullopt, 0.0, causal);
  return out.transpose(1, 2).to(dtype);
}

AttentionImpl::AttentionImpl(const AttentionOptions& options)
    : options_(options),
      to_q_(options.query_dim, options.heads * options.head_dim, options.qkv_bias),
      to_k_(options.context_dim, options.heads * options.head_dim, options.qkv_bias),
      to_v_(options.context_dim, options.heads * options.head_dim, options.qkv_bias) {
  register_module("to_q", to_q_);
  register_module("to_k", to_k_);
  register_module("to_v", to_v_);
  const auto to_out = register_module("to_out", std::make_shared<torch::nn::Module>("to_out"));
  to_out_ = to_out->register_module("0", Linear(options.heads * options.head_dim, options.query_dim));
}

KeysAndValues AttentionImpl::keys_and_values(const torch::Tensor& source) {
  const auto heads = [this](const torch::Tensor& y) { return y.unflatten(2, {options_.heads, options_.head_dim}); };
  return {heads(to_k_->forward_without_bias(source)), heads(to_v_(source))};
}

torch::Tensor AttentionImpl::forward(const torch::Tensor& x, const torch::Tensor& context, ContextCache* cache) {
  check_shape(x, {-1, -1, options_.query_dim}, "attention input");
  const torch::Tensor& source = context.defined() ? context : x;
  check_shape(source, {x.size(0), -1, options_.context_dim}, "attention context");
  const torch::Tensor queries = to_q_(x).unflatten(2, {options_.heads, options_.head_dim});
  KeysAndValues made;
  KeysAndValues& pair = cache != nullptr && context.defined() ? cache->of(this) : made;
  if (!pair.keys.defined()) pair = keys_and_values(source);
  // diffusers' AttnProcessor2_0 never computes it in float32. float16 overflows in models that ask for it.
  const bool upcast = options_.upcast && queries.scalar_type() == torch::kFloat16;
  const torch::Tensor attended = attend(queries, pair.keys, pair.values, /*causal=*/false, upcast);
  return to_out_(attended.flatten(2));
}

}  // namespace sdtune::model
