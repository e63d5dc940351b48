#include "model/unet/unet_config.h"

#include <algorithm>

#include "model/nn/image_model_config.h"
#include "model/nn/model_limits.h"
#include "model/unet/unet_config_check.h"

namespace sdtune::model {
namespace {

constexpr const char* kUnetClass = "UNet2DConditionModel";
constexpr int64_t kFirstSampleSize = 64;  // of Stable Diffusion 1, the only models that are so old

bool is_before_diffusers_0_9(const Json& json) {
  const auto entry = json.find("_diffusers_version");
  if (entry == json.end() || !entry->is_string()) return false;
  const std::string version = entry->get<std::string>();
  const bool has_one_digit = version.size() == 3 || (version.size() > 3 && version[3] == '.');
  return has_one_digit && version.starts_with("0.") && version[2] >= '0' && version[2] <= '8';
}

// The converters of diffusers before 0.9 wrote 32, a key of LDM's files that nothing reads there, for models of 64 x 64
// cells; diffusers' pipelines read 64 where such a file has less.
int64_t read_cells(JsonObject& object, const Json& json, int64_t fallback) {
  const int64_t cells = read_sample_size(object, fallback, kMaxLatentSide);
  const bool is_unused_key = object.raw("sample_size").is_number_integer() && is_before_diffusers_0_9(json);
  return is_unused_key ? std::max(cells, kFirstSampleSize) : cells;
}

// One value for all levels, or one for each.
std::vector<int64_t> a_value_a_level(JsonObject& object, const std::string& key, int64_t levels, int64_t fallback) {
  std::vector<int64_t> values = !object.raw(key).is_null() ? object.integers(key) : std::vector<int64_t>{fallback};
  if (!object.raw(key).is_array()) values.resize(levels, values.front());
  return values;
}

// One depth for all, a depth a level, or a list of depths a level.
std::vector<std::vector<int64_t>> read_depths(JsonObject& object, const std::string& key, int64_t levels) {
  const Json& value = object.raw(key);
  if (value.is_null()) return std::vector<std::vector<int64_t>>(levels, {1});
  const auto depth = [&](const Json& number) {
    if (!number.is_number_integer()) object.fail(key, "depths must be integers (got " + number.dump() + ")");
    object.check_range(key, number.get<int64_t>(), 1, kMaxTransformerDepth);
    return number.get<int64_t>();
  };
  if (!value.is_array()) return std::vector<std::vector<int64_t>>(levels, {depth(value)});
  std::vector<std::vector<int64_t>> depths;
  for (const Json& level : value) {
    std::vector<int64_t>& row = depths.emplace_back();
    if (!level.is_array()) {
      row.push_back(depth(level));
      continue;
    }
    for (const Json& layer : level) row.push_back(depth(layer));
  }
  return depths;
}

std::vector<bool> read_only_cross_attention(JsonObject& object, int64_t levels) {
  const Json& value = object.raw("only_cross_attention");
  if (value.is_array()) return object.booleans("only_cross_attention");
  return std::vector<bool>(levels, object.boolean("only_cross_attention", false));
}

void read_blocks(JsonObject& object, const Json& json, UNetConfig& config) {
  if (!object.raw("down_block_types").is_null()) config.down_block_types = object.strings("down_block_types");
  if (!object.raw("up_block_types").is_null()) config.up_block_types = object.strings("up_block_types");
  if (!object.raw("block_out_channels").is_null()) config.block_out_channels = object.integers("block_out_channels");
  // null means "no middle block", absence the default.
  const bool no_middle = json.contains("mid_block_type") && json["mid_block_type"].is_null();
  config.mid_block_type = no_middle ? "" : object.string("mid_block_type", config.mid_block_type);
  const int64_t levels = config.num_levels();
  if (levels < 1 || levels > kMaxLevels) {
    object.fail("block_out_channels", "has a number of levels that is not supported (got " + std::to_string(levels) +
                                          "; allowed: 1 to " + std::to_string(kMaxLevels) + ")");
  }
  config.only_cross_attention = read_only_cross_attention(object, levels);
  config.layers_per_block = a_value_a_level(object, "layers_per_block", levels, 2);
  config.cross_attention_dim = a_value_a_level(object, "cross_attention_dim", levels, 1280);
  config.num_attention_heads = a_value_a_level(object, "attention_head_dim", levels, 8);
  config.transformer_layers_per_block = read_depths(object, "transformer_layers_per_block", levels);
  if (!object.raw("reverse_transformer_layers_per_block").is_null()) {
    config.reverse_transformer_layers_per_block = read_depths(object, "reverse_transformer_layers_per_block", levels);
  }
}

void read_conditions(JsonObject& object, UNetConfig& config) {
  const std::string addition = object.string("addition_embed_type", "");
  if (!addition.empty() && addition != "text_time") {
    object.fail("addition_embed_type", "not supported (got " + addition + "; allowed: null, text_time)");
  }
  config.text_time = !addition.empty();
  config.addition_time_embed_dim = object.integer("addition_time_embed_dim", 0);
  config.projection_class_embeddings_input_dim = object.integer("projection_class_embeddings_input_dim", 0);
  config.time_embedding_dim = object.integer("time_embedding_dim", 0);
  config.flip_sin_to_cos = object.boolean("flip_sin_to_cos", true);
  config.freq_shift = object.integer("freq_shift", 0);
}

// What diffusers' class can do and ours does not: only the value that switches it off passes.
void require_unused_features(JsonObject& object) {
  for (const char* key :
       {"encoder_hid_dim", "encoder_hid_dim_type", "num_attention_heads", "class_embed_type", "num_class_embeds",
        "time_embedding_act_fn", "timestep_post_act", "time_cond_proj_dim", "cross_attention_norm"}) {
    object.require(key, nullptr);
  }
  for (const char* key : {"dual_cross_attention", "resnet_skip_time_act", "class_embeddings_concat"}) {
    object.require(key, false);
  }
  object.require("dropout", 0.0);
  object.require("resnet_out_scale_factor", 1.0);
  object.require("resnet_time_scale_shift", "default");
  object.require("time_embedding_type", "positional");
  object.require("attention_type", "default");
  // These two concern block types that are refused anyway.
  object.ignore("mid_block_only_cross_attention");
  object.ignore("addition_embed_type_num_heads");
}

// A list of equal values as diffusers likes it: one value.
template <class Value>
Json shortest(const std::vector<Value>& values) {
  const bool equal = std::all_of(values.begin(), values.end(), [&](const Value& value) { return value == values[0]; });
  return equal && !values.empty() ? Json(static_cast<Value>(values.front())) : Json(values);
}

Json depths_json(const std::vector<std::vector<int64_t>>& depths) {
  // One depth as a number: diffusers takes a list for one of every layer, and fails where it is shorter.
  std::vector<Json> levels;
  for (const std::vector<int64_t>& row : depths) levels.push_back(row.size() == 1 ? Json(row.front()) : Json(row));
  const bool a_number_each = std::all_of(depths.begin(), depths.end(), [](const auto& row) { return row.size() == 1; });
  return a_number_each ? shortest(levels) : Json(levels);
}

Json null_or(int64_t value) {
  return value == 0 ? Json() : Json(value);
}

}  // namespace

UNetConfig UNetConfig::from_json(const Json& json, const std::string& where) {
  JsonObject object(json, where);
  object.require("_class_name", kUnetClass);
  UNetConfig config;
  config.sample_size = read_cells(object, json, config.sample_size);
  config.in_channels = object.integer("in_channels", config.in_channels);
  config.out_channels = object.integer("out_channels", config.out_channels);
  config.center_input_sample = object.boolean("center_input_sample", false);
  read_blocks(object, json, config);
  read_conditions(object, config);
  config.downsample_padding = object.integer("downsample_padding", 1);
  config.mid_block_scale_factor = object.number("mid_block_scale_factor", 1.0);
  config.act_fn = read_activation(object);
  if (json.contains("norm_num_groups") && json["norm_num_groups"].is_null()) {
    object.fail("norm_num_groups", "a model without norms is not supported (got null; allowed: a number of groups)");
  }
  config.norm_num_groups = object.integer("norm_num_groups", config.norm_num_groups);
  config.norm_eps = object.number("norm_eps", config.norm_eps);
  config.use_linear_projection = object.boolean("use_linear_projection", false);
  config.upcast_attention = object.boolean("upcast_attention", false);
  config.conv_in_kernel = object.integer("conv_in_kernel", 3);
  config.conv_out_kernel = object.integer("conv_out_kernel", 3);
  require_unused_features(object);
  object.finish();
  check_unet_config(config, object);
  return config;
}

Json UNetConfig::to_json() const {
  Json json;
  json["_class_name"] = kUnetClass;
  json["sample_size"] = null_or(sample_size);
  json["in_channels"] = in_channels;
  json["out_channels"] = out_channels;
  json["center_input_sample"] = center_input_sample;
  json["flip_sin_to_cos"] = flip_sin_to_cos;
  json["freq_shift"] = freq_shift;
  json["down_block_types"] = down_block_types;
  json["mid_block_type"] = mid_block_type.empty() ? Json() : Json(mid_block_type);
  json["up_block_types"] = up_block_types;
  json["only_cross_attention"] = shortest(only_cross_attention);
  json["block_out_channels"] = block_out_channels;
  json["layers_per_block"] = shortest(layers_per_block);
  json["downsample_padding"] = downsample_padding;
  json["mid_block_scale_factor"] = mid_block_scale_factor;
  json["act_fn"] = activation_name(act_fn);
  json["norm_num_groups"] = norm_num_groups;
  json["norm_eps"] = norm_eps;
  json["cross_attention_dim"] = shortest(cross_attention_dim);
  json["transformer_layers_per_block"] = depths_json(transformer_layers_per_block);
  if (!reverse_transformer_layers_per_block.empty()) {
    json["reverse_transformer_layers_per_block"] = depths_json(reverse_transformer_layers_per_block);
  }
  json["attention_head_dim"] = shortest(num_attention_heads);
  json["use_linear_projection"] = use_linear_projection;
  json["upcast_attention"] = upcast_attention;
  json["addition_embed_type"] = text_time ? Json("text_time") : Json();
  json["addition_time_embed_dim"] = null_or(addition_time_embed_dim);
  json["projection_class_embeddings_input_dim"] = null_or(projection_class_embeddings_input_dim);
  json["time_embedding_dim"] = null_or(time_embedding_dim);
  json["conv_in_kernel"] = conv_in_kernel;
  json["conv_out_kernel"] = conv_out_kernel;
  return json;
}

}  // namespace sdtune::model
