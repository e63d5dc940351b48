#include "train/plan/probe_settings.h"

#include <algorithm>

#include "model/base/json.h"

namespace sdtune::train {

void isolate_probe(TrainConfig& config, std::int64_t class_images) {
  config.checkpoint.resume_from_checkpoint.clear();
  config.rental = {};
  config.observe.report_to = {"none"};
  config.observe.report_model = false;
  config.observe.report_images = 0;
  config.observe.validation_prompt.clear();
  config.identity.identity_steps.reset();  // without which the next two are refused
  config.identity.identity_model.clear();
  config.identity.early_stop_patience.reset();
  config.optim.lr_scheduler = "constant";
  config.optim.lr_warmup_steps = 0;
  config.data.class_data_dir.clear();
  config.data.num_class_images = std::min(config.data.num_class_images, class_images);
  for (std::string& text : config.data.concepts) {
    Json subject = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!subject.is_object()) continue;  // refused where it is read
    subject.erase("class_data_dir");
    subject.erase("num_class_images");
    text = subject.dump();
  }
}

}  // namespace sdtune::train
