// The options of `eval`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/generate/generate_options.h"
#include "model/options/field.h"

namespace sdtune::app {

struct EvalOptions {
  std::string config;                   // a YAML file with these options
  std::string images;                   // the photos that the model was tuned on; empty: rendered ones of `subject`
  std::optional<std::int64_t> subject;  // reserved person; unset: as labels.jsonl beside the photos says
  std::string model;                    // empty: see chosen_model.h
  std::string base;                     // empty: the run's own, else the bundled base
  std::string classifier;               // empty: the installed one
  std::optional<std::string> instance_prompt;  // unset: with the words that the model notes, else "sks person"
  std::string class_prompt = "a photo of a person";
  std::int64_t num_images = 4;  // per prompt
  std::int64_t num_class_images = 128;
  bool quick = false;
  std::int64_t steps = 30;
  // For SDXL, too: results are compared with those of other bases.
  double guidance_scale = model::default_guidance_scale(false);
  std::int64_t seed = 0;
  std::string output = "eval";
  bool json = false;
  std::string device = "auto";
  std::string dtype = "default";

  FieldList fields();
};

}  // namespace sdtune::app
