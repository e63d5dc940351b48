// The options of `sdtune convert`.
#pragma once

#include <optional>
#include <string>

#include "model/base/field.h"

namespace sdtune::app {

struct ConvertOptions {
  std::string model;
  std::string output;
  std::string dtype = "auto";
  bool overwrite = false;
  bool dry_run = false;
  std::string config;
  std::string tokenizer;
  std::optional<std::string> prediction_type;
  bool extract_ema = false;

  FieldList fields();
};

}  // namespace sdtune::app
