#include "app/commands/merge_options.h"

#include <utility>

namespace sdtune::app {

FieldList MergeOptions::fields() {
  const auto field = [](std::string name, std::string help, std::string placeholder = "") {
    FieldInfo info{.name = std::move(name), .help = std::move(help), .group = "Merge"};
    info.placeholder = std::move(placeholder);
    return info;
  };
  FieldInfo model_info = field("model",
                               "Diffusers folder or hub id, safetensors file with a whole model, or the run folder of "
                               "a LoRA, which is then merged into the base it was trained on.",
                               "FOLDER|FILE");
  model_info.aliases = {"base", "pretrained_model_name_or_path"};
  FieldInfo dtype_info = field("dtype", "Of the weights written; auto: one that holds the model's exactly.", "DTYPE");
  dtype_info.choices = {"auto", "float32", "bfloat16", "float16"};
  FieldList list = {
      {std::move(model_info), &model},
      {field(
           "lora",
           "LoRA file or run folder to add to the weights, with a weight behind ':' where it is not 1; a negative one "
           "takes a merged LoRA out again. Give it several times for several.",
           "FILE[:WEIGHT]"),
       &lora},
      {field("output", "Where the result goes: a diffusers folder, or one .safetensors file.", "FOLDER|FILE"), &output},
      {std::move(dtype_info), &dtype},
      {field("overwrite", "Replace the output, when it is a model."), &overwrite},
  };
  for (Field& item : single_file.fields()) list.push_back(std::move(item));
  return list;
}

}  // namespace sdtune::app
