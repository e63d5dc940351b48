#include "model/single_file/published_configs.h"

#include <utility>

#include "model/base/error.h"
#include "model/tokenizer/clip_special_tokens.h"
#include "model/tokenizer/clip_vocabulary_file.h"

namespace sdtune::model {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFirstChannels = 320;  // of every published UNet

std::int64_t text_width(ModelFamily family) {
  if (family == ModelFamily::kSdxl) return 2048;  // 768 and 1280, side by side
  return family == ModelFamily::kSd2 ? 1024 : 768;
}

UNetConfig unet_config(ModelFamily family, bool v_prediction) {
  UNetConfig config;  // the defaults are SD 1.x's blocks
  config.sample_size = 64;
  if (family == ModelFamily::kSd2) {
    config.sample_size = v_prediction ? 96 : 64;
    config.num_attention_heads = {5, 10, 20, 20};
    config.use_linear_projection = true;
    config.upcast_attention = v_prediction;  // 2.1's 768-pixel model overflows in half precision without it
  } else if (family == ModelFamily::kSdxl) {
    config.sample_size = 128;
    config.down_block_types = {"DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"};
    config.up_block_types = {"CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"};
    config.only_cross_attention = {false, false, false};
    config.block_out_channels = {320, 640, 1280};
    config.layers_per_block = {2, 2, 2};
    config.transformer_layers_per_block = {{1}, {2}, {10}};
    config.num_attention_heads = {5, 10, 20};
    config.use_linear_projection = true;
    config.text_time = true;
    config.addition_time_embed_dim = 256;
    config.projection_class_embeddings_input_dim = 2816;
  }
  config.cross_attention_dim.assign(config.block_out_channels.size(), text_width(family));
  return config;
}

VaeConfig vae_config(ModelFamily family, std::int64_t sample_size) {
  const bool xl = family == ModelFamily::kSdxl;
  VaeConfig config;
  config.block_out_channels = {128, 256, 512, 512};
  config.layers_per_block = 2;
  config.sample_size = sample_size * config.downscale();
  config.scaling_factor = xl ? 0.13025 : 0.18215;
  config.force_upcast = xl;
  return config;
}

ClipTextConfig clip_l_config() {
  ClipTextConfig config;
  config.hidden_size = 768;
  config.intermediate_size = 3072;
  config.projection_dim = 768;
  config.num_attention_heads = 12;
  return config;
}

ClipTextConfig open_clip_h_config() {
  ClipTextConfig config;
  config.hidden_size = 1024;
  config.intermediate_size = 4096;
  config.num_hidden_layers = 23;  // of 24: SD 2.x takes the states before the last
  config.num_attention_heads = 16;
  config.hidden_act = Activation::kGelu;
  return config;
}

ClipTextConfig open_clip_big_g_config() {
  ClipTextConfig config;
  config.hidden_size = 1280;
  config.intermediate_size = 5120;
  config.projection_dim = 1280;
  config.num_hidden_layers = 32;
  config.num_attention_heads = 20;
  config.hidden_act = Activation::kGelu;
  config.with_projection = true;
  return config;
}

std::pair<std::string, Json> scheduler(ModelFamily family, const std::string& prediction_type) {
  // clip_sample and set_alpha_to_one are for other classes that are made of the config.
  Json config = {{"num_train_timesteps", 1000}, {"beta_start", 0.00085},
                 {"beta_end", 0.012},           {"beta_schedule", "scaled_linear"},
                 {"steps_offset", 1},           {"prediction_type", prediction_type},
                 {"clip_sample", false},        {"set_alpha_to_one", false}};
  if (family == ModelFamily::kSdxl) {
    config["timestep_spacing"] = "leading";
    config["interpolation_type"] = "linear";
    return {"EulerDiscreteScheduler", config};
  }
  if (family == ModelFamily::kSd2 && prediction_type == "v_prediction") return {"DDIMScheduler", config};
  config["skip_prk_steps"] = true;
  return {"PNDMScheduler", config};
}

// CLIP's tokenizer as the family pads: with the end token, or OpenCLIP's with "!", its first word.
ClipTokenizer make_tokenizer(const fs::path& folder, bool open_clip) {
  ClipVocabulary vocabulary = read_clip_vocabulary(folder);
  ClipSpecialTokens special = read_clip_special_tokens(folder, vocabulary.ids, vocabulary.tokenizer_json_tokens);
  const std::string pad = open_clip ? "!" : special.eos_token;
  std::erase_if(special.tokens, [&](const AddedToken& token) {
    return token.content == special.pad_token && token.content != special.bos_token &&
           token.content != special.eos_token && token.content != special.unk_token;
  });
  special.pad_token = pad;
  if (open_clip) {
    const auto found = vocabulary.ids.find(pad);
    if (found == vocabulary.ids.end()) throw WeightError(folder.string(), "is not CLIP's vocabulary: it lacks \"!\"");
    AddedToken token;
    token.content = pad;
    token.id = found->second;
    token.normalized = false;
    token.special = true;
    special.tokens.push_back(std::move(token));
  }
  return ClipTokenizer::from_vocabulary(std::move(vocabulary), std::move(special));
}

}  // namespace

BundleConfigs published_configs(ModelFamily family, const std::string& prediction_type,
                                const fs::path& tokenizer_folder) {
  const bool xl = family == ModelFamily::kSdxl, sd2 = family == ModelFamily::kSd2;
  auto [scheduler_class, scheduler_config] = scheduler(family, prediction_type);
  ModelIndex index;
  index.pipeline_class = xl ? kStableDiffusionXL : kStableDiffusion;
  index.scheduler_class = scheduler_class;
  index.force_zeros_for_empty_prompt = xl;
  UNetConfig unet = unet_config(family, prediction_type == "v_prediction");
  VaeConfig vae = vae_config(family, unet.sample_size);
  BundleConfigs configs{.index = std::move(index),
                        .scheduler = std::move(scheduler_config),
                        .tokenizer = make_tokenizer(tokenizer_folder, sd2),
                        .tokenizer_2 = std::nullopt,
                        .text_encoder = sd2 ? open_clip_h_config() : clip_l_config(),
                        .text_encoder_2 = std::nullopt,
                        .unet = std::move(unet),
                        .vae = std::move(vae)};
  if (xl) {
    configs.tokenizer_2 = make_tokenizer(tokenizer_folder, true);
    configs.text_encoder_2 = open_clip_big_g_config();
  }
  return configs;
}

void check_published_size(const LdmFile& file, ModelFamily family) {
  const auto refuse = [&](const std::string& what, std::int64_t got, std::int64_t allowed) {
    throw WeightError(file.where(),
                      std::string("is not of the size ") + family_name(family) + " was published in: " + what +
                          " (got " + std::to_string(got) + "; allowed: " + std::to_string(allowed) + ")",
                      "give its configs, a diffusers folder: --config FOLDER");
  };
  const std::int64_t first = file.tensor(std::string(kUNetPrefix) + "input_blocks.0.0.weight").size(0);
  if (first != kFirstChannels) refuse("channels of the UNet's first level", first, kFirstChannels);
  for (const std::string& name : file.names_under(kUNetPrefix)) {
    if (!name.ends_with(".attn2.to_k.weight")) continue;
    const torch::Tensor weight = file.tensor(name);
    const std::int64_t width = weight.dim() == 2 ? weight.size(1) : 0;
    if (width != text_width(family)) refuse("width of the prompt embeddings", width, text_width(family));
  }
}

}  // namespace sdtune::model
