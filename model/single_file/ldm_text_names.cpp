#include <array>
#include <string>

#include "model/single_file/ldm_names.h"

namespace sdtune::model {

NameTable clip_names() {
  NameTable table;
  for (const char* same : {"text_model.", "text_projection."}) table.add(same, {same});
  return table;
}

NameTable open_clip_names(const ClipTextConfig& config) {
  NameTable table;
  table.add("text_model.embeddings.token_embedding.", {"token_embedding."});
  table.add("text_model.embeddings.position_embedding.weight", {"positional_embedding"});
  table.add("text_model.final_layer_norm.", {"ln_final."});
  table.add("text_projection.weight", {"text_projection", StoredForm::kTransposed});
  for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    const std::string ours = "text_model.encoder.layers." + std::to_string(layer) + ".";
    const std::string ldm = "transformer.resblocks." + std::to_string(layer) + ".";
    table.add(ours + "layer_norm1.", {ldm + "ln_1."});
    table.add(ours + "layer_norm2.", {ldm + "ln_2."});
    table.add(ours + "mlp.fc1.", {ldm + "mlp.c_fc."});
    table.add(ours + "mlp.fc2.", {ldm + "mlp.c_proj."});
    table.add(ours + "self_attn.out_proj.", {ldm + "attn.out_proj."});
    constexpr std::array kStack = {"q_proj.", "k_proj.", "v_proj."};
    for (std::size_t third = 0; third < kStack.size(); ++third) {
      for (const char* kind : {"weight", "bias"}) {
        table.add(ours + "self_attn." + kStack[third] + kind,
                  {ldm + "attn.in_proj_" + kind, StoredForm::kStacked, static_cast<std::int64_t>(third)});
      }
    }
  }
  return table;
}

}  // namespace sdtune::model
