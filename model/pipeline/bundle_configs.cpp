#include "model/pipeline/bundle_configs.h"

#include <string>
#include <utility>

#include "model/files/json_file.h"
#include "model/schedule/scheduler.h"

namespace sdtune::model {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kTimeIds = 6;  // numbers that condition SDXL on size and crop

template <typename Config>
Config read_config(const fs::path& folder) {
  const fs::path path = folder / "config.json";
  return Config::from_json(read_json(path), path.string());
}

ClipTextConfig read_text_config(const fs::path& folder, const std::string& class_name) {
  auto config = read_config<ClipTextConfig>(folder);
  config.with_projection = class_name == "CLIPTextModelWithProjection";  // diffusers goes by model_index.json, too
  return config;
}

std::string got(std::int64_t value, std::int64_t allowed) {
  return " (got " + std::to_string(value) + "; allowed: " + std::to_string(allowed) + ")";
}

void check_tokenizer(const ClipTokenizer& tokenizer, const ClipTextConfig& encoder, const fs::path& folder,
                     std::vector<Problem>& problems) {
  if (tokenizer.vocab_size() > encoder.vocab_size) {
    problems.push_back({folder.string(),
                        "has more tokens than its text encoder knows: the two do not belong together (got " +
                            std::to_string(tokenizer.vocab_size()) + "; allowed: up to " +
                            std::to_string(encoder.vocab_size) + ")",
                        "copy tokenizer and text encoder from the same model"});
  }
  if (tokenizer.model_max_length() > encoder.max_position_embeddings) {
    problems.push_back({(folder / "tokenizer_config.json").string() + ": model_max_length",
                        "is longer than its text encoder's max_position_embeddings (got " +
                            std::to_string(tokenizer.model_max_length()) + "; allowed: up to " +
                            std::to_string(encoder.max_position_embeddings) + ")",
                        ""});
  }
}

void check_xl(const BundleConfigs& configs, const std::string& where, std::vector<Problem>& problems) {
  if (!configs.unet.text_time) {
    problems.push_back({where + ": addition_embed_type", "must be text_time in an SDXL pipeline", ""});
    return;
  }
  const std::int64_t width = configs.text_encoder_2->projection_dim + kTimeIds * configs.unet.addition_time_embed_dim;
  if (configs.unet.projection_class_embeddings_input_dim != width) {
    problems.push_back({where + ": projection_class_embeddings_input_dim",
                        "is not text_encoder_2's projection_dim + 6 x addition_time_embed_dim" +
                            got(configs.unet.projection_class_embeddings_input_dim, width),
                        ""});
  }
}

void check_unet(const BundleConfigs& configs, const std::string& where, std::vector<Problem>& problems) {
  std::int64_t text_width = configs.text_encoder.hidden_size;
  if (configs.text_encoder_2) text_width += configs.text_encoder_2->hidden_size;
  for (const std::int64_t width : configs.unet.cross_attention_dim) {
    if (width == text_width) continue;
    problems.push_back(
        {where + ": cross_attention_dim", "is not the width of the prompt embeddings" + got(width, text_width), ""});
    break;
  }
  if (configs.unet.in_channels != configs.vae.latent_channels) {
    const bool inpainting = configs.unet.in_channels == 2 * configs.vae.latent_channels + 1;
    problems.push_back({where + ": in_channels",
                        "is not the VAE's latent_channels" + got(configs.unet.in_channels, configs.vae.latent_channels),
                        inpainting ? "this is an inpainting model; take the plain model it was made from" : ""});
  }
  if (configs.unet.out_channels != configs.vae.latent_channels) {
    problems.push_back(
        {where + ": out_channels",
         "is not the VAE's latent_channels" + got(configs.unet.out_channels, configs.vae.latent_channels), ""});
  }
}

}  // namespace

BundleConfigs BundleConfigs::read(const fs::path& folder) {
  ModelIndex index = ModelIndex::read(folder);
  Json scheduler = read_json(folder / "scheduler" / "scheduler_config.json");
  require_known_scheduler(folder, index.scheduler_class, scheduler);
  BundleConfigs configs{.index = std::move(index),
                        .scheduler = std::move(scheduler),
                        .tokenizer = ClipTokenizer::from_folder(folder / "tokenizer"),
                        .tokenizer_2 = std::nullopt,
                        .text_encoder = {},
                        .text_encoder_2 = std::nullopt,
                        .unet = read_config<UNetConfig>(folder / "unet"),
                        .vae = read_config<VaeConfig>(folder / "vae")};
  configs.text_encoder = read_text_config(folder / "text_encoder", configs.index.text_encoder_class);
  if (configs.index.is_xl()) {
    configs.tokenizer_2 = ClipTokenizer::from_folder(folder / "tokenizer_2");
    configs.text_encoder_2 = read_text_config(folder / "text_encoder_2", configs.index.text_encoder_2_class);
  }
  return configs;
}

std::vector<Problem> BundleConfigs::find_misfits(const fs::path& folder) const {
  std::vector<Problem> problems;
  check_tokenizer(tokenizer, text_encoder, folder / "tokenizer", problems);
  if (text_encoder_2) check_tokenizer(*tokenizer_2, *text_encoder_2, folder / "tokenizer_2", problems);
  const std::string where = (folder / "unet" / "config.json").string();
  check_unet(*this, where, problems);
  if (index.is_xl()) {
    check_xl(*this, where, problems);
  } else if (unet.text_time) {
    problems.push_back({where + ": addition_embed_type", "is for SDXL pipelines only (got text_time)", ""});
  }
  return problems;
}

void require_known_scheduler(const fs::path& folder, const std::string& class_name, const Json& config) {
  make_scheduler(class_name, Json::object(), (folder / "model_index.json").string() + ": scheduler");
  make_scheduler(class_name, config, (folder / "scheduler" / "scheduler_config.json").string());
}

}  // namespace sdtune::model
