// A whole model from one LDM single file.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/pipeline/bundle.h"
#include "model/single_file/model_family.h"
#include "model/single_file/prediction_choice.h"

namespace sdtune::model {

struct SingleFileOptions {
  std::filesystem::path config;                // a diffusers folder, weights not needed; empty: the published configs
  std::filesystem::path tokenizer;             // a folder with CLIP's vocabulary; not needed with `config`
  std::optional<std::string> prediction_type;  // epsilon or v_prediction; none: as the file says
  bool extract_ema = false;                    // the UNet's values from the EMA copy
  std::optional<torch::Dtype> dtype;           // of the modules; none: one that holds every stored value exactly
  std::optional<std::string> pickle_key;       // the file is a pickle: see read_pickle_tensors; none: safetensors
  bool names_only = false;  // names and shapes are checked, and the modules' values stay undefined: no memory is used
};

struct SingleFileModel {
  ModelBundle bundle;  // on the CPU; `folder` is the file
  ModelFamily family = ModelFamily::kSd1;
  PredictionChoice prediction;
  torch::Dtype dtype = torch::kFloat32;  // of the modules
  std::int64_t matched = 0;              // parameters found, all that there are
  std::vector<std::string> ignored;      // names of tensors that carry nothing: noise schedule, EMA copy, ...
};

// Throws WeightError naming the file, counts and first names, unless every parameter of every part is there in its
// shape and every tensor is used or known to carry nothing; ConfigError naming the option that is needed.
SingleFileModel read_single_file(const std::filesystem::path& path, const SingleFileOptions& options);

// Throws WeightError for float64 numbers, which no format that is written holds exactly.
void refuse_float64(const std::vector<TensorSource>& sources);

// Throws WeightError naming the first tensor with a finite number that `dtype` cannot hold: it would be written as
// infinite. Reads what is stored in a wider format.
void refuse_overflow(const std::vector<TensorSource>& sources, torch::Dtype dtype);

// The dtype that holds every floating tensor of all sources exactly, where none is float64: theirs, or float32 where
// they differ.
torch::Dtype joint_dtype(const std::vector<TensorSource>& sources);

}  // namespace sdtune::model
