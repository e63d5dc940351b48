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
  const std::string convert = "Convert", reading = "Reading a single file";
  FieldInfo dtype_info =
      field("dtype", "Of the weights written; auto: one that holds every stored value exactly.", convert, "DTYPE");
  dtype_info.choices = {"auto", "float32", "bfloat16", "float16"};
  FieldInfo model_info =
      field("model", "Diffusers folder, or safetensors file with a whole model (LDM's names).", convert, "FOLDER|FILE");
  model_info.aliases = {"base", "pretrained_model_name_or_path"};
  FieldInfo prediction = field("prediction_type",
                               "What the model predicts; none: as the file's metadata, its tensor v_pred or --config "
                               "says. SD 2.x needs one of these.",
                               reading, "TYPE");
  prediction.choices = {"epsilon", "v_prediction"};
  return {
      {std::move(model_info), &model},
      {field("output", "The other one: a .safetensors file, or a folder.", convert, "FILE|FOLDER"), &output},
      {std::move(dtype_info), &dtype},
      {field("overwrite", "Replace the output, when it is a model.", convert), &overwrite},
      {field("dry_run", "Compare names and shapes, and say what would be written.", convert), &dry_run},
      {field("config",
             "Diffusers folder, weights not needed, whose configs and tokenizers the file's model has; empty: the "
             "published ones of its family.",
             reading, "FOLDER"),
       &config},
      {field("tokenizer", "Folder with CLIP's vocab.json and merges.txt; not needed with --config.", reading, "FOLDER"),
       &tokenizer},
      {std::move(prediction), &prediction_type},
      {field("extract_ema", "Take the UNet's weights from the EMA copy in the file.", reading), &extract_ema},
  };
}

}  // namespace sdtune::app
