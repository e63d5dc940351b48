// The options of `sample`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/base/field.h"

namespace sdtune::app {

struct SampleOptions {
  std::string config;  // a YAML file with these options
  std::string prompt;
  std::string prompts;  // a file of prompts, instead of one
  std::string trigger;  // what {trigger} stands for; empty: what the model was trained to draw
  std::optional<std::string> negative_prompt;
  std::string prompt_syntax = "weighted";
  std::int64_t clip_skip = 0;  // layers of the text encoder left out
  std::int64_t num_images = 1;
  std::int64_t steps = 30;
  double guidance_scale = 7.5;
  double guidance_rescale = 0.0;
  double eta = 0.0;
  std::int64_t seed = 0;
  std::optional<std::string> sampler;       // unset: the model's own scheduler
  std::optional<std::int64_t> width;        // px; unset: the size the model was trained for
  std::optional<std::int64_t> height;       // px
  std::string init_image;                   // a picture to begin with; empty: noise
  double strength = 0.8;                    // of the steps, with init_image
  double hires_scale = 1.0;                 // of a second pass; 1: none
  std::optional<std::int64_t> hires_steps;  // unset: as many as steps
  double hires_strength = 0.7;              // of the second pass's steps
  std::string vae;                          // another autoencoder, a folder or file; empty: the model's
  std::vector<std::string> embedding;       // FILE[:token] each
  std::vector<std::string> lora;            // FILE[:WEIGHT] each
  std::string lora_dir = "loras";           // where <lora:NAME> of a prompt is looked for
  bool vae_tiling = false;
  bool vae_slicing = true;
  std::string model;  // empty: see chosen_model.h
  std::string output = "samples";
  bool ai_mark = true;
  std::string like;        // a picture whose texts say how to draw; empty: none
  std::string grid;        // a PNG file with all pictures in one; empty: none
  std::string compare;     // a model whose pictures stand above in the grid; empty: none
  std::string references;  // a folder of photos for the grid's first row; empty: none
  std::int64_t batch = 1;  // pictures drawn at once
  std::string device = "auto";
  std::string dtype = "float32";

  FieldList fields();
};

}  // namespace sdtune::app
