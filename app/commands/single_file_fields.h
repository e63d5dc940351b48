// The options that reading a single file needs, wherever a command takes one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/cli/arguments.h"
#include "model/base/error.h"
#include "model/options/field.h"
#include "model/single_file/single_file_read.h"

namespace sdtune::app {

struct SingleFileFields {
  std::string config;     // a diffusers folder with the configs; empty: the family's published ones
  std::string tokenizer;  // a folder with CLIP's vocabulary
  std::optional<std::string> prediction_type;  // none: as the file says
  bool extract_ema = false;

  FieldList fields();
  // Adds a problem for each that was given though `model` is no single file.
  void refuse(const Origins& origins, const std::string& model, std::vector<Problem>& problems);
  // Finds the folder that `config` names. Throws what find_model_folder throws.
  model::SingleFileOptions reading() const;
};

}  // namespace sdtune::app
