#include "model/clip/text_encoder.h"

namespace sdtune::model {
namespace {

// The value of eos_token_id in files written before transformers corrected it: there the end-of-text token is the
// largest id of a row.
constexpr int64_t kOldEosTokenId = 2;

}  // namespace

CLIPTextModelImpl::CLIPTextModelImpl(const ClipTextConfig& config) : config_(config), text_model_(config) {
  register_module("text_model", text_model_);
  if (config.with_projection) {
    text_projection_ =
        register_module("text_projection", Linear(config.hidden_size, config.projection_dim, /*with_bias=*/false));
  }
}

TextOutput CLIPTextModelImpl::forward(const torch::Tensor& ids) {
  TextOutput output;
  const torch::Tensor rows_of_ids = ids.to(parameters().front().device());
  output.hidden_states = text_model_(rows_of_ids);
  output.last_hidden_state = text_model_->final_norm(output.hidden_states.back());
  // Learned tokens have ids behind the vocabulary's, and are no end.
  const torch::Tensor of_vocabulary = rows_of_ids.masked_fill(rows_of_ids.ge(config_.vocab_size), 0);
  const torch::Tensor end = config_.eos_token_id == kOldEosTokenId
                                ? of_vocabulary.argmax(1)
                                : (rows_of_ids == config_.eos_token_id).to(torch::kInt32).argmax(1);
  const torch::Tensor rows = torch::arange(ids.size(0), end.options());
  output.pooled = output.last_hidden_state.index({rows, end});
  if (text_projection_) output.pooled = text_projection_(output.pooled);
  return output;
}

void CLIPTextModelImpl::set_gradient_checkpointing(bool on) {
  text_model_->set_gradient_checkpointing(on);
}

}  // namespace sdtune::model
