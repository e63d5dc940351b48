#include "app/convert/convert_options.h"

#include "model/options/option_group.h"

namespace sdtune::app {

FieldList ConvertOptions::fields() {
  FieldList list;
  OptionGroup group(list, "Convert");
  group.add("model", &model, "Diffusers folder, or safetensors file with a whole model (LDM key names).")
      .aliases({"base", "pretrained_model_name_or_path"})
      .placeholder("FOLDER|FILE");
  group
      .add(
          "pickle", &pickle,
          "In place of --model: file of torch.save (.ckpt, .bin, .pt), of which only the tensors are read; nothing in "
          "it is run. With a .safetensors output its tensors keep their names; with a folder it must be a whole model.")
      .placeholder("FILE");
  group
      .add("pickle_key", &pickle_key,
           "Entry of the pickle that holds the tensors, such as params_ema; empty: state_dict where there is one, else "
           "the file itself.")
      .placeholder("KEY");
  group.add("output", &output, "Result in the other format: a .safetensors file, or a folder.")
      .placeholder("FILE|FOLDER");
  group.add("lora", &lora, "LoRA to convert instead of a model; --model is its base.").placeholder("FILE");
  group.add("lora_naming", &lora_naming, "Key names of the LoRA written: A1111-style programs read kohya's.")
      .choices({"kohya", "diffusers"});
  group.add("dtype", &dtype, "Number format of the weights written; auto: one that holds every stored value exactly.")
      .choices({"auto", "float32", "bfloat16", "float16"})
      .placeholder("DTYPE");
  group.add("overwrite", &overwrite, "Replace the output if it is a model.");
  group.add("dry_run", &dry_run, "Compare key names and shapes and print what would be written.");
  group.add("json", &json, "Print the result as one JSON object.");
  for (Field& item : single_file.fields()) list.push_back(std::move(item));
  return list;
}

}  // namespace sdtune::app
