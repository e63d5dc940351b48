#include "model/lora/lora_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "model/base/error.h"
#include "model/base/json.h"
#include "model/files/file_system.h"
#include "model/files/json_file.h"
#include "model/lora/lora_hashes.h"
#include "model/lora/lycoris.h"
#include "model/weights/safetensors_file.h"
#include "model/weights/safetensors_writer.h"
#include "model/weights/stored_weights.h"
#include "model/weights/tensor_text.h"

namespace sdtune::model {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAdapterMetadata = "lora_adapter_metadata";

// Values of PEFT's init_lora_weights with which a LoRA begins as a part of the base's weights and is taken out of them.
// PEFT does so again when it reads the file.
constexpr std::array kPartsOfTheBase = {"pissa", "olora", "corda", "loftq", "lora_ga"};

// Whether a pattern of PEFT's names the layer: it is compared with the end of the path, with a ^ before it with all of
// it.
bool names_layer(const std::string& pattern, const std::string& layer) {
  return pattern.starts_with('^') ? pattern.substr(1) == layer : selects_layer(pattern, layer);
}

// Where the header says it: "unet.lora_alpha" for all of a component, "unet.alpha_pattern" for single layers; of a UNet
// alone, as unet.save_lora_adapter of diffusers writes it, the same without "unet.".
class AdapterMetadata {
 public:
  explicit AdapterMetadata(const SafetensorsFile& file) {
    const auto& metadata = file.header().metadata;
    const auto found = metadata.find(kAdapterMetadata);
    if (found != metadata.end()) json_ = parse_json(found->second, file.path().string() + ": " + kAdapterMetadata);
    // PEFT's own folder says it in a file beside the weights.
    const fs::path beside = file.path().parent_path() / "adapter_config.json";
    if (found == metadata.end() && file.path().filename() == "adapter_model.safetensors" && is_file(beside)) {
      json_ = read_json(beside);
    }
    refuse_parts_of_the_base(file.path().string());
  }

  // alpha / r of PEFT's LoHa and LoKr, which counts also where both factors of a LoKr are whole.
  std::optional<double> lycoris_scale(const std::string& layer) const {
    const std::string inner = layer.substr(layer.find('.') + 1);
    const std::optional<double> alpha = number_of("alpha_pattern", "alpha", inner);
    const std::optional<double> rank = number_of("rank_pattern", "r", inner);
    return alpha && rank && *rank > 0 ? std::optional(*alpha / *rank) : std::nullopt;
  }

  // What the layer's two matrices, of this rank, count as alpha / rank. PEFT's rank-stabilised LoRA
  // (arXiv:2312.03732) divides by the rank's root.
  std::optional<double> alpha(const std::string& layer, double rank) const {
    const std::string component = layer.substr(0, layer.find('.'));
    const bool has_prefix = component != "unet" || !json_.contains("lora_alpha");
    const std::string prefix = has_prefix ? component + "." : "";
    const std::optional<double> stored =
        number_of(prefix + "alpha_pattern", prefix + "lora_alpha", layer.substr(component.size() + 1));
    const auto stabilised = json_.find(prefix + "use_rslora");
    return stored && stabilised != json_.end() && *stabilised == true ? *stored * std::sqrt(rank) : stored;
  }

 private:
  // Of all components: "unet.init_lora_weights", in PEFT's own folder "init_lora_weights".
  void refuse_parts_of_the_base(const std::string& where) const {
    for (const auto& [key, value] : json_.items()) {
      if (!key.ends_with("init_lora_weights") || !value.is_string()) continue;
      const std::string way = value.get<std::string>();
      for (const std::string_view part : kPartsOfTheBase) {
        if (!way.starts_with(part)) continue;
        throw WeightError(where,
                          "holds a part of the base's weights, which would count twice (" + key + " is " + way + ")",
                          "convert it in PEFT: save_pretrained with path_initial_model_for_weight_conversion");
      }
    }
  }

  // What the patterns say of the layer, else what `key` says of all layers.
  std::optional<double> number_of(const std::string& patterns_key, const std::string& key,
                                  const std::string& layer) const {
    const auto patterns = json_.find(patterns_key);
    if (patterns != json_.end() && patterns->is_object()) {
      for (const auto& [pattern, value] : patterns->items()) {
        if (value.is_number() && names_layer(pattern, layer)) return value.get<double>();
      }
    }
    const auto all = json_.find(key);
    if (all != json_.end() && all->is_number()) return all->get<double>();
    return std::nullopt;
  }

  Json json_ = Json::object();
};

// What the file holds of each layer; alphas apart, because a file may have none.
struct Found {
  LoraWeights matrices;
  std::map<std::string, double> alphas;
  std::map<std::string, LycorisFactors> factors;  // of layers that are no plain LoRA
  std::vector<std::string> unknown;               // stored names that are no layer of the model
  std::size_t keys = 0;
};

double alpha_value(const torch::Tensor& tensor, const std::string& where, const std::string& name) {
  if (tensor.numel() != 1) throw WeightError(where, name + " is not one number");
  const auto alpha = tensor.to(torch::kFloat64).item<double>();
  if (!std::isfinite(alpha))
    throw WeightError(where, name + " is no finite number", "the training that wrote it failed");
  return alpha;
}

// What the rank can be read from: [r, in] or [out, r], of a convolution with its kernel, and r at least 1.
void require_matrix(const torch::Tensor& tensor, const std::string& where, const std::string& name) {
  if (tensor.dim() >= 2 && tensor.numel() > 0) return;
  throw WeightError(where, name + " is no matrix with numbers in it (got " + shape_text(tensor.sizes()) +
                               "; needed: two dimensions or more, rank 1 or more)");
}

Found collect(const SafetensorsFile& file, const LoraKeys& keys) {
  Found found;
  const std::string where = file.path().string();
  found.keys = file.header().tensors.size();
  for (const auto& entry : file.header().tensors) {
    const std::optional<LoraKey> key = keys.read(entry.first, where);
    if (!key) {
      found.unknown.push_back(entry.first);
      continue;
    }
    const torch::Tensor tensor = file.tensor(entry.first);
    if (key->role == LoraRole::kAlpha) {
      found.alphas[key->layer] = alpha_value(tensor, where, entry.first);
      continue;
    }
    require_floating(tensor, where, entry.first);
    if (key->role == LoraRole::kLycoris) {
      found.factors[key->layer][key->factor] = tensor;
      continue;
    }
    require_matrix(tensor, where, entry.first);
    LoraMatrices& matrices = found.matrices[key->layer];
    torch::Tensor& half = key->role == LoraRole::kDown ? matrices.down : matrices.up;
    if (half.defined()) throw WeightError(where, "holds " + key->layer + " twice, under " + entry.first + " too");
    half = tensor;
  }
  return found;
}

// Turns the layers that are no plain LoRA into changes of their weights.
void settle_lycoris(Found& found, const std::map<std::string, LowRankLayer*>& layers, const AdapterMetadata& metadata,
                    const std::string& where) {
  for (auto& [layer, factors] : found.factors) {
    LoraMatrices& matrices = found.matrices[layer];
    if (matrices.down.defined()) factors["lora_down"] = std::exchange(matrices.down, {});
    if (matrices.up.defined()) factors["lora_up"] = std::exchange(matrices.up, {});
    const auto stored = found.alphas.find(layer);
    const bool has_alpha = stored != found.alphas.end();
    const std::optional<double> alpha = has_alpha && stored->second != 0 ? std::optional(stored->second) : std::nullopt;
    matrices.delta =
        lycoris_delta(factors, alpha, layers.at(layer)->layer_weight().sizes().vec(), where + ": " + layer);
    const std::optional<double> scale = has_alpha ? std::nullopt : metadata.lycoris_scale(layer);
    if (scale) matrices.delta = matrices.delta * *scale;
  }
}

void require_whole(const Found& found, const std::string& where) {
  std::vector<Problem> problems;
  if (!found.unknown.empty()) {
    const auto count = found.unknown.size();
    problems.push_back({where,
                        std::to_string(count) + " of " + std::to_string(found.keys) +
                            " keys are no layer of this model, the first is " + found.unknown.front(),
                        "it was trained on another model"});
  }
  for (const auto& [layer, matrices] : found.matrices) {
    if (!matrices.delta.defined() && (!matrices.down.defined() || !matrices.up.defined())) {
      problems.push_back({where, layer + " has only one of its two matrices", "the file is incomplete"});
    }
  }
  if (found.matrices.empty() && found.unknown.empty()) problems.push_back({where, "holds no low-rank layer", ""});
  if (!problems.empty()) throw WeightError(problems);
}

// The 4-D matrices of a 1 x 1 convolution for a model whose layer is linear, and the other way round.
torch::Tensor fitted(const torch::Tensor& matrix, const std::vector<int64_t>& shape) {
  const bool same_numbers =
      matrix.numel() > 0 && matrix.flatten(1).sizes() == torch::IntArrayRef{shape[0], matrix.numel() / matrix.size(0)};
  std::int64_t needed = 1;
  for (const int64_t side : shape) needed *= side;
  return same_numbers && matrix.numel() == needed && matrix.dim() != static_cast<int64_t>(shape.size())
             ? matrix.view(shape)
             : matrix;
}

// `left` as the style stores it: kohya's alphas are float32.
bool came_back(const LoraWeights& left, const LoraWeights& right, LoraStyle style, std::optional<torch::Dtype> dtype) {
  const auto alpha = [&](double value) { return style == LoraStyle::kKohya ? static_cast<float>(value) : value; };
  if (left.size() != right.size()) return false;
  return std::equal(left.begin(), left.end(), right.begin(), [&](const auto& ours, const auto& read) {
    const auto stored = [&](const torch::Tensor& tensor) { return (dtype ? tensor.to(*dtype) : tensor).cpu(); };
    return ours.first == read.first && alpha(ours.second.alpha) == alpha(read.second.alpha) &&
           same_bits(stored(ours.second.down), read.second.down) && same_bits(stored(ours.second.up), read.second.up);
  });
}

// A layer's name for PEFT, which compares the ends of paths: transformers 5 has no text_model in a CLIPTextModel.
std::string peft_name(const std::string& layer) {
  const std::string inner = layer.substr(layer.find('.') + 1);
  constexpr const char* kClipPrefix = "text_model.";
  return inner.starts_with(kClipPrefix) ? inner.substr(std::strlen(kClipPrefix)) : inner;
}

// What diffusers and PEFT read rank and alpha from: those of each component's first layer, and the layers that differ.
std::string adapter_metadata(const LoraWeights& weights) {
  Json json = Json::object();
  for (const auto& [layer, matrices] : weights) {
    const std::string component = layer.substr(0, layer.find('.'));
    const std::string inner = peft_name(layer);
    if (!json.contains(component + ".r")) {
      json[component + ".r"] = matrices.rank();
      json[component + ".lora_alpha"] = matrices.alpha;
      json[component + ".rank_pattern"] = json[component + ".alpha_pattern"] = Json::object();
    }
    if (json[component + ".r"] != matrices.rank()) json[component + ".rank_pattern"][inner] = matrices.rank();
    if (json[component + ".lora_alpha"] != matrices.alpha) json[component + ".alpha_pattern"][inner] = matrices.alpha;
    json[component + ".target_modules"].push_back(inner);
  }
  return json.dump();
}

}  // namespace

fs::path find_lora_file(const fs::path& path) {
  std::error_code status;
  for (const fs::path& file : {path, path / kLoraFile, path / "model" / kLoraFile}) {
    if (is_file(file)) return file;
  }
  const bool is_folder = fs::is_directory(path, status);
  throw WeightError(path.string(), is_folder ? std::string("holds no ") + kLoraFile : "there is no such file",
                    "a LoRA is a .safetensors file, or the folder of a run with method: lora");
}

LoraWeights read_lora(const fs::path& path, const ModelBundle& bundle) {
  const SafetensorsFile file(path);
  Found found = collect(file, LoraKeys(bundle));
  std::map<std::string, LowRankLayer*> layers;
  for (const LoraLayer& entry : lora_layers(bundle)) layers[entry.path] = entry.layer;
  const AdapterMetadata metadata(file);
  settle_lycoris(found, layers, metadata, path.string());
  require_whole(found, path.string());
  for (auto& [layer, matrices] : found.matrices) {
    if (matrices.delta.defined()) continue;
    const auto alpha = found.alphas.find(layer);
    const auto rank = static_cast<double>(matrices.rank());
    matrices.alpha = alpha != found.alphas.end() ? alpha->second : metadata.alpha(layer, rank).value_or(rank);
    if (matrices.alpha == 0) matrices.alpha = rank;  // kohya: an alpha of 0 means the rank
    matrices.down = fitted(matrices.down, layers.at(layer)->down_shape(matrices.rank()));
    matrices.up = fitted(matrices.up, layers.at(layer)->up_shape(matrices.rank()));
  }
  return std::move(found.matrices);
}

void write_lora(FileSystem& files, const fs::path& path, const ModelBundle& bundle, const LoraWeights& weights,
                LoraStyle style, std::optional<torch::Dtype> dtype, std::map<std::string, std::string> metadata) {
  const LoraKeys keys(bundle);
  NamedTensors tensors;
  const auto stored = [&](const torch::Tensor& matrix) { return dtype ? matrix.to(*dtype) : matrix; };
  for (const auto& [layer, matrices] : weights) {
    tensors.emplace_back(keys.write(layer, LoraRole::kDown, style), stored(matrices.down));
    tensors.emplace_back(keys.write(layer, LoraRole::kUp, style), stored(matrices.up));
    if (style == LoraStyle::kKohya) {  // float32 whatever the matrices are
      tensors.emplace_back(keys.write(layer, LoraRole::kAlpha, style),
                           torch::scalar_tensor(matrices.alpha, torch::kFloat32));
    }
  }
  if (style == LoraStyle::kDiffusers) metadata[kAdapterMetadata] = adapter_metadata(weights);
  if (style == LoraStyle::kKohya) add_lora_hashes(tensors, metadata);
  write_verified_file(files, path, [&](const fs::path& partial) {
    write_safetensors(files, partial, std::move(tensors), std::nullopt, std::move(metadata));
    if (came_back(weights, read_lora(partial, bundle), style, dtype)) return;
    throw WeightError(path.string(), "did not come back as it was written", "the disk may be faulty");
  });
}

}  // namespace sdtune::model
