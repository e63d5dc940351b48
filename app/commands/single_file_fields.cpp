#include "app/commands/single_file_fields.h"

#include <utility>

#include "model/base/hub_cache.h"

namespace sdtune::app {

FieldList SingleFileFields::fields() {
  const auto field = [](std::string name, std::string help, std::string placeholder = "") {
    FieldInfo info{.name = std::move(name), .help = std::move(help), .group = "Reading a single file"};
    info.placeholder = std::move(placeholder);
    return info;
  };
  FieldInfo prediction = field("prediction_type",
                               "What the model predicts; none: as the file's metadata, its tensor v_pred or --config "
                               "says. SD 2.x needs one of these.",
                               "TYPE");
  prediction.choices = {"epsilon", "v_prediction"};
  return {
      {field("config",
             "Diffusers folder, weights not needed, whose configs and tokenizers the file's model has; empty: the "
             "published ones of its family.",
             "FOLDER"),
       &config},
      {field("tokenizer", "Folder with CLIP's vocab.json and merges.txt; not needed with --config.", "FOLDER"),
       &tokenizer},
      {std::move(prediction), &prediction_type},
      {field("extract_ema", "Take the UNet's weights from the EMA copy in the file."), &extract_ema},
  };
}

void SingleFileFields::refuse(const train::Origins& origins, const std::string& model, std::vector<Problem>& problems) {
  for (const Field& item : fields()) {
    const std::string& name = item.info.name;
    if (origins.count(name) == 0) continue;
    problems.push_back({flag_name(name), "is for reading a single file, and " + model + " is none", "leave it out"});
  }
}

model::SingleFileOptions SingleFileFields::reading() const {
  model::SingleFileOptions options;
  if (!config.empty()) options.config = find_model_folder(config);
  options.tokenizer = tokenizer;
  options.prediction_type = prediction_type;
  options.extract_ema = extract_ema;
  return options;
}

}  // namespace sdtune::app
