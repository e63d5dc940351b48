// The options of `sample`: those of every image, and where prompts come from and images go.
#pragma once

#include <cstdint>
#include <string>

#include "model/generate/generate_options.h"
#include "model/options/field.h"

namespace sdtune::app {

struct SampleOptions {
  model::GenerateOptions image;
  std::string config;              // a YAML file with these options
  std::string prompts;             // a file of prompts, instead of one
  std::string trigger;             // what {trigger} stands for; empty: the words that the model was trained with
  std::string like;                // an image whose metadata say how to generate it again; empty: none
  std::string lora_dir = "loras";  // where <lora:NAME> of a prompt is looked for
  std::string model;               // empty: see chosen_model.h
  std::string output = "samples";  // a folder
  std::string grid;                // a PNG file with all images in one; empty: none
  std::string compare;             // a model whose images stand above in the grid; empty: none
  std::string references;          // a folder of photos for the grid's first row; empty: none
  std::int64_t batch = 1;          // images generated at once

  FieldList fields();
};

}  // namespace sdtune::app
