#include "app/commands/merge_options.h"

#include "model/options/option_group.h"

namespace sdtune::app {

FieldList MergeOptions::fields() {
  FieldList list;
  OptionGroup group(list, "Merge");
  group
      .add("model", &model,
           "Diffusers folder or hub id, safetensors file with a whole model, or run folder of a LoRA, which is then "
           "merged into the base it was trained on.")
      .aliases({"base", "pretrained_model_name_or_path"})
      .placeholder("FOLDER|FILE");
  group
      .add("lora", &lora,
           "LoRA file or run folder to merge into the weights, followed by ':' and a weight other than 1; a negative "
           "weight subtracts a merged LoRA.")
      .placeholder("FILE[:WEIGHT]");
  group.add("output", &output, "Result: a diffusers folder, or one .safetensors file.").placeholder("FOLDER|FILE");
  group.add("dtype", &dtype, "Number format of the weights written; auto: one that holds the model's weights exactly.")
      .choices({"auto", "float32", "bfloat16", "float16"})
      .placeholder("DTYPE");
  group.add("overwrite", &overwrite, "Replace the output if it is a model.");
  group.add("json", &json, "Print the result as one JSON object.");
  for (Field& item : single_file.fields()) list.push_back(std::move(item));
  return list;
}

}  // namespace sdtune::app
