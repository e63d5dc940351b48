// A Stable Diffusion model of a few thousand random weights, for tests that need a whole one.
#pragma once

#include <string>

#include "model/pipeline/bundle.h"
#include "tests/support/scratch_folder.h"

namespace sdtune::test {

// A tokenizer folder of six tokens under scratch/name.
inline ClipTokenizer make_tiny_tokenizer(const ScratchFolder& scratch, const std::string& name) {
  scratch.write(name + "/vocab.json", R"({"a":0,"a</w>":1,"b":2,"b</w>":3,"<|startoftext|>":4,"<|endoftext|>":5})");
  scratch.write(name + "/merges.txt", "#version: 0.2\n");
  scratch.write(name + "/tokenizer_config.json", R"({"model_max_length":77,"tokenizer_class":"CLIPTokenizer"})");
  return ClipTokenizer::from_folder(scratch.path() / name);
}

inline model::CLIPTextModel make_tiny_text_encoder(std::int64_t width, bool with_projection) {
  model::ClipTextConfig config;
  config.vocab_size = 6;
  config.hidden_size = width;
  config.intermediate_size = 2 * width;
  config.projection_dim = width;
  config.num_hidden_layers = 1;
  config.num_attention_heads = 2;
  config.bos_token_id = 4;
  config.eos_token_id = 5;
  config.with_projection = with_projection;
  return model::CLIPTextModel(config);
}

inline Json tiny_unet_config(std::int64_t text_width) {
  return {{"sample_size", 8},
          {"block_out_channels", {8, 8}},
          {"layers_per_block", 1},
          {"norm_num_groups", 4},
          {"attention_head_dim", 2},
          {"cross_attention_dim", text_width},
          {"down_block_types", {"CrossAttnDownBlock2D", "DownBlock2D"}},
          {"up_block_types", {"UpBlock2D", "CrossAttnUpBlock2D"}}};
}

// SD: one text encoder of 8 channels, epsilon. SDXL: a second one, of 4 with projection, and size conditioning.
inline model::ModelBundle make_tiny_bundle(const ScratchFolder& scratch, bool xl) {
  model::ModelBundle bundle{.pipeline_class = xl ? "StableDiffusionXLPipeline" : "StableDiffusionPipeline",
                            .tokenizer = make_tiny_tokenizer(scratch, "tokenizer_source"),
                            .tokenizer_2 = std::nullopt,
                            .scheduler_class = "DDIMScheduler",
                            .scheduler_config = {{"_class_name", "DDIMScheduler"}, {"steps_offset", 1}},
                            .force_zeros_for_empty_prompt = xl,
                            .folder = {}};
  bundle.text_encoder = make_tiny_text_encoder(8, false);
  Json unet = tiny_unet_config(xl ? 12 : 8);
  if (xl) {
    bundle.tokenizer_2 = make_tiny_tokenizer(scratch, "tokenizer_2_source");
    bundle.text_encoder_2 = make_tiny_text_encoder(4, true);
    unet["addition_embed_type"] = "text_time";
    unet["addition_time_embed_dim"] = 2;
    unet["projection_class_embeddings_input_dim"] = 4 + 6 * 2;
  }
  bundle.unet = model::UNet2DConditionModel(model::UNetConfig::from_json(unet, "unet"));
  model::VaeConfig vae;
  vae.block_out_channels = {8, 8};
  vae.norm_num_groups = 4;
  vae.sample_size = 16;
  bundle.vae = model::AutoencoderKL(vae);
  return bundle;
}

}  // namespace sdtune::test
