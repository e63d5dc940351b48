#include "train/portrait/pretrain/base_design.h"

#include <utility>

#include "model/base/error.h"
#include "train/portrait/pretrain/initial_weights.h"

namespace sdtune::train::pretrain {
namespace {

constexpr std::int64_t kHeads = 4;
constexpr std::int64_t kMaxTokens = 77;
constexpr std::int64_t kUnetGroups = 16;

model::VaeConfig vae_config(const BaseDesign& design) {
  model::VaeConfig config;
  config.block_out_channels = design.vae_channels;
  config.latent_channels = design.latent_channels;
  config.norm_num_groups = design.vae_groups;
  config.sample_size = design.image_size;
  config.scaling_factor = 1.0;
  config.force_upcast = false;
  return config;
}

// Transformers at every level but the first, where they cost most and help least.
model::UNetConfig unet_config(const BaseDesign& design) {
  const std::size_t levels = design.unet_channels.size();
  model::UNetConfig config;
  config.sample_size = design.latent_size();
  config.in_channels = config.out_channels = design.latent_channels;
  config.block_out_channels = design.unet_channels;
  config.down_block_types.assign(levels, "CrossAttnDownBlock2D");
  config.up_block_types.assign(levels, "CrossAttnUpBlock2D");
  config.down_block_types.front() = "DownBlock2D";
  config.up_block_types.back() = "UpBlock2D";
  config.only_cross_attention.assign(levels, false);
  config.layers_per_block.assign(levels, 1);
  config.cross_attention_dim.assign(levels, design.text_hidden);
  config.transformer_layers_per_block.assign(levels, {1});
  config.num_attention_heads.assign(levels, kHeads);
  config.norm_num_groups = kUnetGroups;
  return config;
}

model::ClipTextConfig text_config(const BaseDesign& design, const ClipTokenizer& tokenizer) {
  model::ClipTextConfig config;
  config.vocab_size = tokenizer.vocab_size();
  config.hidden_size = config.projection_dim = design.text_hidden;
  config.intermediate_size = 4 * design.text_hidden;
  config.num_hidden_layers = design.text_layers;
  config.num_attention_heads = kHeads;
  config.max_position_embeddings = kMaxTokens;
  config.bos_token_id = tokenizer.bos_token_id();
  config.eos_token_id = tokenizer.eos_token_id();
  config.pad_token_id = tokenizer.pad_token_id();
  return config;
}

// Three halvings to as many places as portrait-64 has, each with twice its channels; the first levels are thin, since
// they see most places. Four channels and more a group of the norms: with one the norm would take a colour's mean away.
BaseDesign portrait_128() {
  BaseDesign design;
  design.image_size = 128;
  design.detail = portrait::Detail::k128;
  design.unet_channels = {80, 144, 208};
  design.vae_channels = {32, 48, 96, 192};
  design.vae_groups = 4;
  design.latent_channels = 12;
  design.vae_head_weight = 3.0;
  design.vae_mark_weight = 30.0;  // a birthmark is 0.5 % of its image
  design.perceptual_weight = 0.3;
  design.adversarial_share = 0.3;
  design.preset = "portrait-128";
  return design;
}

}  // namespace

BaseDesign BaseDesign::named(const std::string& name) {
  BaseDesign design;
  if (name == "portrait") return design;
  if (name == "portrait-128") return portrait_128();
  if (name != "nano") {
    throw ConfigError("design", "unknown design (got " + name + "; allowed: portrait, portrait-128, nano)");
  }
  design.vocabulary = 600;
  design.text_hidden = 32;
  design.text_layers = 1;
  design.unet_channels = {32, 64};
  design.vae_channels = {16, 32, 32};
  design.latent_channels = 4;
  return design;
}

// With Stable Diffusion's own end a latent of 256 places still shows its image's mean at the last timestep, so that
// images took colours and shapes from the noise that they begin with.
void set_base_schedule(model::ModelBundle& bundle) {
  bundle.scheduler_class = "DPMSolverMultistepScheduler";
  bundle.scheduler_config = {{"_class_name", bundle.scheduler_class},
                             {"num_train_timesteps", 1000},
                             {"beta_start", 0.00085},
                             {"beta_end", 0.012},
                             {"beta_schedule", "scaled_linear"},
                             {"rescale_betas_zero_snr", true},
                             {"timestep_spacing", "trailing"},
                             {"steps_offset", 1},  // of no effect on that spacing; diffusers warns without
                             {"prediction_type", "v_prediction"},
                             {"clip_sample", false},  // of no effect here; other classes that are made of it clip
                             {"algorithm_type", "dpmsolver++"},
                             {"solver_order", 2}};
}

model::ModelBundle new_base(const BaseDesign& design, ClipTokenizer tokenizer, std::uint64_t seed) {
  const model::ClipTextConfig text = text_config(design, tokenizer);
  model::ModelBundle bundle{.pipeline_class = "StableDiffusionPipeline",
                            .tokenizer = std::move(tokenizer),
                            .tokenizer_2 = std::nullopt,
                            .scheduler_class = {},
                            .scheduler_config = {},
                            .folder = {}};
  set_base_schedule(bundle);
  bundle.text_encoder = model::CLIPTextModel(text);
  bundle.unet = model::UNet2DConditionModel(unet_config(design));
  bundle.vae = model::AutoencoderKL(vae_config(design));
  draw_initial_weights(*bundle.text_encoder, seed, 0);
  draw_initial_weights(*bundle.unet, seed, 1);
  draw_initial_weights(*bundle.vae, seed, 2);
  return bundle;
}

}  // namespace sdtune::train::pretrain
