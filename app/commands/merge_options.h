// The options of `merge`.
#pragma once

#include <string>
#include <vector>

#include "app/commands/single_file_fields.h"
#include "model/options/field.h"

namespace sdtune::app {

struct MergeOptions {
  std::string model;              // a diffusers folder or hub id, an LDM single file, or a LoRA run
  std::vector<std::string> lora;  // FILE[:WEIGHT], each
  std::string output;             // a folder, or a .safetensors file
  std::string dtype = "auto";     // of the weights written; auto: the model's
  bool overwrite = false;
  bool json = false;
  SingleFileFields single_file;

  FieldList fields();
};

}  // namespace sdtune::app
