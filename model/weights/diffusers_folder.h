// The files of a diffusers folder: model_index.json, and a config.json and weights for each part.
#pragma once

#include <torch/nn/module.h>

#include <filesystem>
#include <optional>
#include <string>

#include "model/base/json.h"
#include "model/files/file_system.h"
#include "model/weights/load_into.h"

namespace sdtune::model {

inline constexpr const char* kStableDiffusion = "StableDiffusionPipeline";
inline constexpr const char* kStableDiffusionXL = "StableDiffusionXLPipeline";

// What model_index.json says. Which parts there are follows from the pipeline's class.
struct ModelIndex {
  std::string pipeline_class;  // kStableDiffusion or kStableDiffusionXL
  std::string scheduler_class;
  std::string text_encoder_class = "CLIPTextModel";
  std::string text_encoder_2_class = "CLIPTextModelWithProjection";  // SDXL
  bool force_zeros_for_empty_prompt = false;                         // SDXL

  // Throws WeightError naming the folder when it has no model_index.json, and the key for a pipeline or a part we do
  // not support. Safety checker, feature extractor and image encoder are not loaded, whatever they are.
  static ModelIndex read(const std::filesystem::path& folder);
  // As diffusers writes it; the parts that we do not load are null.
  Json to_json() const;

  bool is_xl() const { return pipeline_class == kStableDiffusionXL; }
};

// The three kinds of parts with weights: how their keys are spelled, and what diffusers and transformers name the file.
struct PartKind {
  KeyFamily family;
  const char* stem;  // of "<stem>.safetensors"
};
inline constexpr PartKind kUNetPart{KeyFamily::kUNet, "diffusion_pytorch_model"};
inline constexpr PartKind kVaePart{KeyFamily::kVae, "diffusion_pytorch_model"};
inline constexpr PartKind kTextEncoderPart{KeyFamily::kTextEncoder, "model"};

// Brings the module's parameters to dtype and device without keeping their values, then loads every one of them. Throws
// WeightError: see load_into.
LoadReport load_weights(torch::nn::Module& module, const TensorSource& source, KeyFamily family, torch::Dtype dtype,
                        torch::Device device);

// The same from folder/<stem>.safetensors (or shards, or the .fp16 variant). Throws WeightError: see TensorSource too.
LoadReport load_part(torch::nn::Module& module, const std::filesystem::path& folder, const PartKind& kind,
                     torch::Dtype dtype, torch::Device device);

// Writes folder/config.json and folder/<stem>.safetensors, floating tensors cast to `dtype`.
void save_part(FileSystem& files, const torch::nn::Module& module, const Json& config,
               const std::filesystem::path& folder, const PartKind& kind, torch::Dtype dtype);

}  // namespace sdtune::model
