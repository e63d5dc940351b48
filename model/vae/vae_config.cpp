#include "model/vae/vae_config.h"

#include "model/nn/image_model_config.h"
#include "model/nn/model_limits.h"

namespace sdtune::model {
namespace {

constexpr const char* kVaeClass = "AutoencoderKL";
constexpr const char* kDownBlock = "DownEncoderBlock2D";
constexpr const char* kUpBlock = "UpDecoderBlock2D";

void check_block_types(JsonObject& object, const std::string& key, const std::string& only, int64_t levels) {
  const std::vector<std::string> types =
      !object.raw(key).is_null() ? object.strings(key) : std::vector<std::string>{only};
  for (const std::string& type : types) {
    if (type != only) object.fail(key, "not supported (got " + type + "; allowed: " + only + ")");
  }
  if (static_cast<int64_t>(types.size()) != levels) {
    object.fail(
        key, "has " + std::to_string(types.size()) + " entries where block_out_channels has " + std::to_string(levels));
  }
}

void check_numbers(const JsonObject& object, const VaeConfig& config) {
  object.check_range("in_channels", config.in_channels, 1, kMaxChannels);
  object.check_range("out_channels", config.out_channels, 1, kMaxChannels);
  object.check_range("latent_channels", config.latent_channels, 1, kMaxChannels);
  object.check_range("layers_per_block", config.layers_per_block, 1, kMaxLayersPerBlock);
  object.check_range("norm_num_groups", config.norm_num_groups, 1, kMaxChannels);
  for (const int64_t channels : config.block_out_channels) {
    object.check_range("block_out_channels", channels, 1, kMaxChannels);
    if (channels % config.norm_num_groups != 0) {
      object.fail("norm_num_groups", std::to_string(channels) + " channels do not divide into " +
                                         std::to_string(config.norm_num_groups) + " groups");
    }
  }
  if (!(config.scaling_factor > 0.0)) object.fail("scaling_factor", "must be above 0");
}

}  // namespace

VaeConfig VaeConfig::from_json(const Json& json, const std::string& where) {
  JsonObject object(json, where);
  object.require("_class_name", kVaeClass);
  VaeConfig config;
  config.in_channels = object.integer("in_channels", config.in_channels);
  config.out_channels = object.integer("out_channels", config.out_channels);
  if (!object.raw("block_out_channels").is_null()) config.block_out_channels = object.integers("block_out_channels");
  if (config.num_levels() < 1 || config.num_levels() > kMaxVaeLevels) {
    object.fail("block_out_channels", "has a number of levels that is not supported (got " +
                                          std::to_string(config.num_levels()) + "; allowed: 1 to " +
                                          std::to_string(kMaxVaeLevels) + ")");
  }
  check_block_types(object, "down_block_types", kDownBlock, config.num_levels());
  check_block_types(object, "up_block_types", kUpBlock, config.num_levels());
  config.layers_per_block = object.integer("layers_per_block", config.layers_per_block);
  config.act_fn = read_activation(object);
  config.latent_channels = object.integer("latent_channels", config.latent_channels);
  config.norm_num_groups = object.integer("norm_num_groups", config.norm_num_groups);
  config.sample_size = read_sample_size(object, config.sample_size, kMaxImageSide);
  config.scaling_factor = object.number("scaling_factor", config.scaling_factor);
  if (!object.raw("shift_factor").is_null()) config.shift_factor = object.number("shift_factor", 0.0);
  object.require("latents_mean", nullptr);
  object.require("latents_std", nullptr);
  config.force_upcast = object.boolean("force_upcast", true);
  config.use_quant_conv = object.boolean("use_quant_conv", true);
  config.use_post_quant_conv = object.boolean("use_post_quant_conv", true);
  config.mid_block_add_attention = object.boolean("mid_block_add_attention", true);
  object.finish();
  check_numbers(object, config);
  return config;
}

Json VaeConfig::to_json() const {
  Json json;
  json["_class_name"] = kVaeClass;
  json["in_channels"] = in_channels;
  json["out_channels"] = out_channels;
  json["down_block_types"] = std::vector<std::string>(block_out_channels.size(), kDownBlock);
  json["up_block_types"] = std::vector<std::string>(block_out_channels.size(), kUpBlock);
  json["block_out_channels"] = block_out_channels;
  json["layers_per_block"] = layers_per_block;
  json["act_fn"] = activation_name(act_fn);
  json["latent_channels"] = latent_channels;
  json["norm_num_groups"] = norm_num_groups;
  json["sample_size"] = sample_size;
  json["scaling_factor"] = scaling_factor;
  json["shift_factor"] = shift_factor ? Json(*shift_factor) : Json();
  json["latents_mean"] = nullptr;
  json["latents_std"] = nullptr;
  json["force_upcast"] = force_upcast;
  json["use_quant_conv"] = use_quant_conv;
  json["use_post_quant_conv"] = use_post_quant_conv;
  json["mid_block_add_attention"] = mid_block_add_attention;
  return json;
}

}  // namespace sdtune::model
