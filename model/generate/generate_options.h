// The options of generating images: one declaration for the command line, YAML, help, Python's pipelines and docs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/lora/lora_list.h"
#include "model/options/field.h"

namespace sdtune::model {

struct GenerateOptions {
  std::string prompt;
  std::optional<std::string> negative_prompt;
  std::string prompt_syntax = "weighted";  // Python's pipelines begin with "plain", as diffusers reads prompts
  std::int64_t clip_skip = 0;              // layers of the text encoder left out
  std::int64_t num_images = 1;
  std::int64_t steps = 30;
  std::optional<double> guidance_scale;  // unset: default_guidance_scale
  double guidance_rescale = 0.0;
  double eta = 0.0;
  std::int64_t seed = 0;
  std::optional<std::string> sampler;       // of sampler_names(); unset: the model's own scheduler
  std::optional<std::int64_t> width;        // px; unset: the model's resolution
  std::optional<std::int64_t> height;       // px
  double strength = 0.8;                    // share of the steps, with an init image
  double hires_scale = 1.0;                 // of a second pass; 1: none
  std::optional<std::int64_t> hires_steps;  // unset: as many as steps
  double hires_strength = 0.7;              // share of the second pass's steps

  std::string init_image;              // a file; empty: from noise
  std::string vae;                     // another autoencoder, a folder or file; empty: the model's
  std::vector<std::string> embedding;  // FILE[:TOKEN] each
  std::vector<std::string> lora;       // FILE[:WEIGHT] each, as given
  bool vae_tiling = false;
  bool vae_slicing = true;
  bool ai_mark = true;
  std::string device = "auto";
  std::string dtype = "default";
  bool allow_tf32 = false;

  // What is attached: `lora` and the tags of the prompt, once resolve_loras (lora_tags.h) has read them. No option.
  std::vector<WeightedLora> loras;

  // What a call of a pipeline takes: prompt to hires_strength. Python's keyword is python_keyword of each.
  FieldList call_fields();
  // All options, those of call_fields first.
  FieldList fields();
};

// diffusers' default of each pipeline class: 7.5, StableDiffusionXLPipeline 5.0.
constexpr double default_guidance_scale(bool is_xl) {
  return is_xl ? 5.0 : 7.5;
}

// The name of an option in Python: diffusers' where it has another one ("steps" -> "num_inference_steps").
const std::string& python_keyword(const FieldInfo& info);

}  // namespace sdtune::model
