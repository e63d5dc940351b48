#include "app/commands/convert_options.h"

#include <utility>

namespace sdtune::app {
namespace {

FieldInfo field(std::string name, std::string help, std::string group, std::string placeholder = "") {
  FieldInfo info{.name = std::move(name), .help = std::move(help), .group = std::move(group)};
  info.placeholder = std::move(placeholder);
  return info;
}

}  // namespace

FieldList ConvertOptions::fields() {
  const std::string convert = "Convert";
  FieldInfo dtype_info =
      field("dtype", "Of the weights written; auto: one that holds every stored value exactly.", convert, "DTYPE");
  dtype_info.choices = {"auto", "float32", "bfloat16", "float16"};
  FieldInfo model_info =
      field("model", "Diffusers folder, or safetensors file with a whole model (LDM's names).", convert, "FOLDER|FILE");
  model_info.aliases = {"base", "pretrained_model_name_or_path"};
  FieldInfo lora_info =
      field("lora", "A LoRA to write under other names instead; --model is the model it is for.", convert, "FILE");
  FieldInfo naming_info = field("lora_naming", "Whose names: A1111-style programs read kohya's.", convert);
  naming_info.choices = {"kohya", "diffusers"};
  FieldList list = {
      {std::move(model_info), &model},
      {field("output", "The other one: a .safetensors file, or a folder.", convert, "FILE|FOLDER"), &output},
      {std::move(lora_info), &lora},
      {std::move(naming_info), &lora_naming},
      {std::move(dtype_info), &dtype},
      {field("overwrite", "Replace the output, when it is a model.", convert), &overwrite},
      {field("dry_run", "Compare names and shapes, and say what would be written.", convert), &dry_run},
  };
  for (Field& item : single_file.fields()) list.push_back(std::move(item));
  return list;
}

}  // namespace sdtune::app
