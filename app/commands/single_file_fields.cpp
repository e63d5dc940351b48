#include "app/commands/single_file_fields.h"

#include "model/files/hub_cache.h"
#include "model/options/option_group.h"

namespace sdtune::app {

FieldList SingleFileFields::fields() {
  FieldList list;
  OptionGroup group(list, "Reading a single file");
  group
      .add("config", &config,
           "Diffusers folder with the configs and tokenizers of the file's model, without weights; empty: the "
           "published ones of its family.")
      .placeholder("FOLDER");
  group.add("tokenizer", &tokenizer, "Folder with CLIP's vocab.json and merges.txt; not needed with --config.")
      .placeholder("FOLDER");
  group
      .add("prediction_type", &prediction_type,
           "Prediction type of the model; unset: from the file's metadata, its tensor v_pred or --config. SD 2.x "
           "needs one of these.")
      .choices({"epsilon", "v_prediction"})
      .placeholder("TYPE");
  group.add("extract_ema", &extract_ema, "Read the UNet's weights from the EMA copy in the file.");
  return list;
}

void SingleFileFields::refuse(const Origins& origins, const std::string& model, std::vector<Problem>& problems) {
  for (const Field& item : fields()) {
    const std::string& name = item.info.name;
    if (origins.count(name) == 0) continue;
    problems.push_back({flag_name(name), "applies to single files only, and " + model + " is not one", "leave it out"});
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
