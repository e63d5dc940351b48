#include "model/weights/diffusers_folder.h"

#include <fmt/ranges.h>

#include <ATen/ops/empty.h>

#include <algorithm>
#include <vector>

#include "model/base/error.h"
#include "model/core/device.h"
#include "model/files/json_file.h"
#include "model/weights/safetensors_writer.h"
#include "model/weights/tensor_source.h"

namespace sdtune::model {
namespace {

namespace fs = std::filesystem;

// The release whose layout we write. Loaders of diffusers treat files from before 0.9 differently.
constexpr const char* kDiffusersVersion = "0.42.1";

// The class of a part, [library, class] in the file. Throws unless it is one of `allowed`; any class when that is
// empty.
std::string part_class(JsonObject& index, const std::string& part, const std::vector<std::string>& allowed) {
  const Json& entry = index.raw(part);
  if (!entry.is_array() || entry.size() != 2 || !entry[1].is_string()) {
    index.fail(part, "must be [library, class] (got " + entry.dump() + ")");
  }
  const std::string name = entry[1].get<std::string>();
  if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), name) == allowed.end()) {
    const std::string list = fmt::format("{}", fmt::join(allowed, ", "));
    index.fail(part, "is of a class that is not supported (got " + name + "; allowed: " + list + ")");
  }
  return name;
}

std::string pipeline_class_of(JsonObject& index) {
  const std::string name = index.string("_class_name", "");
  if (name != kStableDiffusion && name != kStableDiffusionXL) {
    index.fail("_class_name", "is a pipeline that is not supported (got '" + name + "'; allowed: " + kStableDiffusion +
                                  ", " + kStableDiffusionXL + ")");
  }
  return name;
}

// Parameters in the dtype and on the device they are to have. Their values are about to be loaded, so nothing is
// copied: casting the module would touch its memory twice. Convolutions get their memory order here, once.
void place_parameters(torch::nn::Module& module, torch::Dtype dtype, torch::Device device) {
  const auto options = at::TensorOptions().dtype(dtype).device(device);
  for (torch::Tensor& parameter : module.parameters()) {
    const auto format = parameter.dim() == 4 ? fast_memory_format(device, dtype) : torch::MemoryFormat::Contiguous;
    parameter.set_data(at::empty(parameter.sizes(), options, format));
  }
}

}  // namespace

ModelIndex ModelIndex::read(const fs::path& folder) {
  const fs::path path = folder / "model_index.json";
  std::error_code error;
  if (!fs::exists(path, error)) {
    if (fs::exists(folder / "pytorch_lora_weights.safetensors", error)) {
      throw WeightError(folder.string(), "is a LoRA, and a whole model is needed",
                        "make one of it: sdtune merge --model FOLDER --output MODEL");
    }
    throw WeightError(folder.string(), "is not a diffusers folder: it has no model_index.json",
                      "give the folder that holds model_index.json, unet/, vae/ and text_encoder/");
  }
  const Json json = read_json(path);
  JsonObject object(json, path.string());
  ModelIndex index;
  index.pipeline_class = pipeline_class_of(object);
  index.scheduler_class = part_class(object, "scheduler", {});
  part_class(object, "unet", {"UNet2DConditionModel"});
  part_class(object, "vae", {"AutoencoderKL"});
  part_class(object, "tokenizer", {"CLIPTokenizer", "CLIPTokenizerFast"});
  index.text_encoder_class = part_class(object, "text_encoder", {"CLIPTextModel", "CLIPTextModelWithProjection"});
  if (index.is_xl()) {
    part_class(object, "tokenizer_2", {"CLIPTokenizer", "CLIPTokenizerFast"});
    index.text_encoder_2_class = part_class(object, "text_encoder_2", {"CLIPTextModelWithProjection"});
    index.force_zeros_for_empty_prompt = object.boolean("force_zeros_for_empty_prompt", true);
    object.ignore("add_watermarker");
  } else {
    object.ignore("requires_safety_checker");
  }
  for (const char* part : {"safety_checker", "feature_extractor", "image_encoder"}) object.ignore(part);
  object.finish();
  return index;
}

Json ModelIndex::to_json() const {
  const Json none = Json::array({nullptr, nullptr});
  const Json tokenizer_entry = Json::array({"transformers", "CLIPTokenizer"});
  Json json;
  json["_class_name"] = pipeline_class;
  json["_diffusers_version"] = kDiffusersVersion;
  json["feature_extractor"] = none;
  if (is_xl()) json["force_zeros_for_empty_prompt"] = force_zeros_for_empty_prompt;
  json["image_encoder"] = none;
  if (!is_xl()) {
    json["requires_safety_checker"] = false;
    json["safety_checker"] = none;
  }
  json["scheduler"] = Json::array({"diffusers", scheduler_class});
  json["text_encoder"] = Json::array({"transformers", text_encoder_class});
  if (is_xl()) json["text_encoder_2"] = Json::array({"transformers", text_encoder_2_class});
  json["tokenizer"] = tokenizer_entry;
  if (is_xl()) json["tokenizer_2"] = tokenizer_entry;
  json["unet"] = Json::array({"diffusers", "UNet2DConditionModel"});
  json["vae"] = Json::array({"diffusers", "AutoencoderKL"});
  return json;
}

LoadReport load_weights(torch::nn::Module& module, const TensorSource& source, KeyFamily family, torch::Dtype dtype,
                        torch::Device device) {
  place_parameters(module, dtype, device);
  return load_into(module, source, family);
}

LoadReport load_part(torch::nn::Module& module, const fs::path& folder, const PartKind& kind, torch::Dtype dtype,
                     torch::Device device) {
  return load_weights(module, TensorSource::of_part(folder, kind.stem), kind.family, dtype, device);
}

void save_part(FileSystem& files, const torch::nn::Module& module, const Json& config, const fs::path& folder,
               const PartKind& kind, torch::Dtype dtype) {
  files.create_directories(folder);
  Json stamped = config;
  if (kind.family != KeyFamily::kTextEncoder) stamped["_diffusers_version"] = kDiffusersVersion;
  write_file_atomically(files, folder / "config.json", stamped.dump(2) + "\n");
  NamedTensors tensors;
  for (const auto& item : module.named_parameters()) tensors.emplace_back(item.key(), item.value());
  write_safetensors(files, folder / (std::string(kind.stem) + ".safetensors"), std::move(tensors), dtype);
}

}  // namespace sdtune::model
