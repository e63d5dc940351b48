#include "app/convert/lora_conversion.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/print_json.h"
#include "app/commands/model_output.h"
#include "model/base/error.h"
#include "model/core/device.h"
#include "model/files/file_system.h"
#include "model/files/hub_cache.h"
#include "model/lora/lora_file.h"
#include "model/lora/lora_weights.h"
#include "model/pipeline/bundle_configs.h"
#include "model/pipeline/empty_bundle.h"
#include "model/single_file/single_file_read.h"
#include "model/weights/safetensors_file.h"
#include "model/weights/safetensors_writer.h"
#include "model/weights/tensor_source.h"

namespace sdtune::app {
namespace {

namespace fs = std::filesystem;

void check_output(const ConvertOptions& options) {
  const fs::path output = options.output;
  if (const std::optional<Problem> problem = tilde_problem("--output", output))
    throw ConfigError(std::vector{*problem});
  if (!names_single_file(output)) {
    throw ConfigError("--output", "must end in .safetensors for a LoRA (got " + output.string() + ")");
  }
  std::error_code status;
  if (fs::exists(output, status) && !options.overwrite) {
    throw ConfigError("--output", "exists (got " + output.string() + ")", "--overwrite replaces it");
  }
  if (fs::exists(output, status) && !is_file(output)) {
    throw ConfigError("--output", "is no file (got " + output.string() + ")");
  }
}

// Only two matrices can be renamed: what LoHa and LoKr were read as is a whole weight.
void refuse_products(const fs::path& file, const model::LoraWeights& weights) {
  for (const auto& [layer, matrices] : weights) {
    if (!matrices.delta.defined()) continue;
    throw ConfigError("--lora",
                      file.string() + " has layers that are no two matrices, such as " + layer +
                          " (LoHa, LoKr or a Tucker convolution)",
                      "sdtune merge adds it to the model instead");
  }
}

void check_range(const fs::path& file, const model::LoraWeights& weights, torch::Dtype dtype) {
  model::NamedTensors tensors;
  for (const auto& [layer, matrices] : weights) {
    tensors.emplace_back(layer + ".lora_A", matrices.down);
    tensors.emplace_back(layer + ".lora_B", matrices.up);
  }
  model::refuse_overflow({model::TensorSource::of_tensors(file.string(), tensors)}, dtype);
}

using Metadata = std::map<std::string, std::string>;
constexpr const char* kModuleKey = "ss_network_module";
constexpr const char* kModule = "networks.lora";

// What the file's header says of its training: captions' tags, trigger words, base. Left out is what other names make
// wrong: hashes of the tensors, PEFT's configuration by layer, and arguments of a network that is LoRA's no more.
Metadata metadata_of_training(const fs::path& file) {
  Metadata metadata = model::SafetensorsFile(file).header().metadata;
  const auto module = metadata.find(kModuleKey);
  if (module != metadata.end() && module->second != kModule) {
    metadata.erase(module);
    metadata.erase("ss_network_args");
  }
  for (const char* key : {"sshs_model_hash", "sshs_legacy_hash", "modelspec.hash_sha256", "lora_adapter_metadata"}) {
    metadata.erase(key);
  }
  return metadata;
}

// With what A1111-style programs show of the network: rank and alpha where they are the same for all layers.
Metadata kohya_metadata(Metadata metadata, const model::LoraWeights& weights) {
  metadata[kModuleKey] = kModule;
  const model::LoraMatrices& first = weights.begin()->second;
  for (const auto& [layer, matrices] : weights) {
    if (matrices.rank() != first.rank() || matrices.alpha != first.alpha) return metadata;
  }
  metadata["ss_network_dim"] = std::to_string(first.rank());
  metadata["ss_network_alpha"] = fmt::format("{:g}", first.alpha);
  return metadata;
}

}  // namespace

void convert_lora(const ConvertOptions& options) {
  check_output(options);
  const fs::path folder = find_model_folder(options.model), file = model::find_lora_file(options.lora);
  const model::ModelBundle bundle = model::empty_bundle(model::BundleConfigs::read(folder), folder);
  const model::LoraWeights weights = model::read_lora(file, bundle);
  refuse_products(file, weights);
  model::check_lora(bundle, file.string(), weights);
  const bool is_kohya = options.lora_naming == "kohya";
  std::optional<torch::Dtype> dtype;
  if (options.dtype != "auto") {
    dtype = model::parse_dtype(options.dtype, "--dtype");
    check_range(file, weights, *dtype);
  }
  std::fprintf(stderr, "lora     %s\nlayers   %zu of %s\n", file.c_str(), weights.size(), folder.c_str());
  if (options.dry_run) {
    std::fprintf(stderr, "dry run  nothing is written\n");
  } else {
    create_parent_folder(real_file_system(), options.output);
    Metadata metadata = metadata_of_training(file);
    if (is_kohya) metadata = kohya_metadata(std::move(metadata), weights);
    model::write_lora(real_file_system(), options.output, bundle, weights,
                      is_kohya ? model::LoraStyle::kKohya : model::LoraStyle::kDiffusers, dtype, std::move(metadata));
    std::fprintf(stderr, "checked  read back, verified bit for bit\n");
  }
  if (options.json) {
    print_json({{"kind", "lora"},
                {"model", folder.string()},
                {"lora", file.string()},
                {"output", options.dry_run ? Json() : Json(options.output)},
                {"layers", weights.size()},
                {"naming", options.lora_naming}});
  } else if (!options.dry_run) {
    std::puts(options.output.c_str());
  }
}

}  // namespace sdtune::app
