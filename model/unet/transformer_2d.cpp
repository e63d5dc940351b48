#include "model/unet/transformer_2d.h"

#include "model/core/check.h"
#include "model/kernels/geglu.h"
#include "model/nn/recompute.h"

namespace sdtune::model {
namespace {

constexpr double kGroupNormEps = 1e-6;  // diffusers fixes both, whatever the UNet's norm_eps
constexpr double kLayerNormEps = 1e-5;
constexpr int64_t kFeedForwardFactor = 4;

// In the memory of `fresh` where no gradient is asked for: a view of another result, as a product of rows may be, would
// cost backward a copy.
torch::Tensor sum_of(const torch::Tensor& fresh, const torch::Tensor& x) {
  return fresh.requires_grad() || x.requires_grad() ? fresh + x : fresh.add_(x);
}

Conv2d pointwise(int64_t channels) {
  return Conv2d(Conv2dOptions{.in_channels = channels, .out_channels = channels, .kernel = 1, .padding = 0});
}

}  // namespace

FeedForwardImpl::FeedForwardImpl(int64_t channels) {
  const int64_t inner = kFeedForwardFactor * channels;
  const auto net = register_module("net", std::make_shared<torch::nn::Module>("net"));
  const auto geglu = net->register_module("0", std::make_shared<torch::nn::Module>("GEGLU"));
  proj_ = geglu->register_module("proj", Linear(channels, 2 * inner));
  out_ = net->register_module("2", Linear(inner, channels));
}

torch::Tensor FeedForwardImpl::forward(const torch::Tensor& x) {
  torch::Tensor y = proj_(x);
  y = geglu(y);  // lets go of the widest map of the network before the next is made
  return out_(y);
}

BasicTransformerBlockImpl::BasicTransformerBlockImpl(const TransformerOptions& options)
    : only_cross_attention_(options.only_cross_attention),
      norm1_(options.channels, kLayerNormEps),
      norm2_(options.channels, kLayerNormEps),
      norm3_(options.channels, kLayerNormEps),
      ff_(options.channels) {
  AttentionOptions attention = {.query_dim = options.channels,
                                .context_dim = only_cross_attention_ ? options.context_dim : options.channels,
                                .heads = options.heads,
                                .head_dim = options.channels / options.heads,
                                .upcast = options.upcast_attention};
  register_module("norm1", norm1_);
  attn1_ = register_module("attn1", Attention(attention));
  attention.context_dim = options.context_dim;
  register_module("norm2", norm2_);
  attn2_ = register_module("attn2", Attention(attention));
  register_module("norm3", norm3_);
  register_module("ff", ff_);
}

torch::Tensor BasicTransformerBlockImpl::forward(const torch::Tensor& x, const torch::Tensor& context,
                                                 ContextCache* cache) {
  torch::Tensor y = sum_of(attn1_(norm1_(x), only_cross_attention_ ? context : torch::Tensor(), cache), x);
  y = sum_of(attn2_(norm2_(y), context, cache), y);
  return sum_of(ff_(norm3_(y)), y);
}

Transformer2DImpl::Transformer2DImpl(const TransformerOptions& options)
    : norm_(options.norm_num_groups, options.channels, kGroupNormEps) {
  TORCH_CHECK(options.channels % options.heads == 0, "transformer: ", options.channels, " channels do not divide into ",
              options.heads, " heads");
  register_module("norm", norm_);
  if (options.use_linear_projection) {
    linear_in_ = register_module("proj_in", Linear(options.channels, options.channels));
  } else {
    conv_in_ = register_module("proj_in", pointwise(options.channels));
  }
  transformer_blocks_ = std::make_unique<ModuleList<BasicTransformerBlock>>(*this, "transformer_blocks");
  for (int64_t i = 0; i < options.depth; ++i) {
    transformer_blocks_->push_back(BasicTransformerBlock(options));
  }
  if (options.use_linear_projection) {
    linear_out_ = register_module("proj_out", Linear(options.channels, options.channels));
  } else {
    conv_out_ = register_module("proj_out", pointwise(options.channels));
  }
}

torch::Tensor Transformer2DImpl::forward(const torch::Tensor& x, const torch::Tensor& context, ContextCache* cache) {
  check_shape(x, {-1, -1, -1, -1}, "transformer input");
  const int64_t height = x.size(2), width = x.size(3);
  const auto to_sequence = [](const torch::Tensor& map) { return map.flatten(2).transpose(1, 2); };
  const auto to_map = [&](const torch::Tensor& sequence) {
    return sequence.transpose(1, 2).unflatten(2, {height, width});
  };
  torch::Tensor y = norm_(x);
  y = linear_in_ ? linear_in_(to_sequence(y)) : to_sequence(conv_in_(y));
  for (BasicTransformerBlock& block : *transformer_blocks_) {
    if (recompute_) {
      y = recompute([block](const std::vector<torch::Tensor>& inputs) mutable { return block(inputs[0], inputs[1]); },
                    {y, context});
    } else {
      y = block(y, context, cache);
    }
  }
  if (linear_out_) return to_map(linear_out_(y)) + x;
  return conv_out_(to_map(y)).add_(x);  // in place: a convolution needs its input in backward, not its result
}

}  // namespace sdtune::model
