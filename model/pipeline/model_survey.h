// What a diffusers folder is, from its configs and the headers of its weight files: no weight is read, so a survey of a
// model of any size takes well under a second.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/weights/diffusers_folder.h"
#include "model/weights/load_into.h"
#include "model/weights/tensor_source.h"

namespace sdtune::model {

// What a set of stored tensors amounts to.
struct TensorTotals {
  std::int64_t tensors = 0;
  std::int64_t parameters = 0;                        // numbers in all of them
  std::map<std::string, std::int64_t> parameters_of;  // by dtype: "float16" -> 859520964
};

TensorTotals count_tensors(const TensorSource& source);

struct PartSurvey {
  std::string name;        // unet, vae, text_encoder, text_encoder_2
  std::string class_name;  // UNet2DConditionModel, ...
  TensorTotals totals;     // of what is stored
  LoadReport keys;         // the stored names and shapes against those of the config's architecture
};

struct ModelSurvey {
  std::string pipeline_class;  // as in model_index.json
  std::string scheduler_class;
  std::string prediction_type;  // epsilon, v_prediction
  std::int64_t resolution = 0;  // px: sample_size of the UNet times the VAE's factor; 0 when a config lacks it
  std::vector<PartSurvey> parts;
  std::vector<Problem> problems;  // all that keeps the folder from being loaded

  bool is_xl() const { return pipeline_class == kStableDiffusionXL; }
};

// The part of `folder`/`name` whose class is `class_name`. Throws WeightError for a config or file that is refused.
PartSurvey survey_part(const std::filesystem::path& folder, const std::string& name, const std::string& class_name);

// Problems are collected, not thrown, except for a folder without a readable model_index.json.
ModelSurvey survey_model(const std::filesystem::path& folder);

}  // namespace sdtune::model
