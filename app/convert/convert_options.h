// The options of `sdtune convert`.
#pragma once

#include <string>

#include "app/commands/single_file_fields.h"
#include "model/options/field.h"

namespace sdtune::app {

struct ConvertOptions {
  std::string model;
  std::string pickle;      // in place of `model`: a file of torch.save
  std::string pickle_key;  // which entry of it holds the tensors
  std::string output;
  std::string lora;  // not empty: this is converted, for the layers of `model`
  std::string lora_naming = "kohya";
  std::string dtype = "auto";
  bool overwrite = false;
  bool dry_run = false;
  bool json = false;
  SingleFileFields single_file;

  FieldList fields();
};

}  // namespace sdtune::app
