#include "train/objective/zero_terminal_snr.h"

#include "model/schedule/prediction.h"
#include "model/schedule/scheduler.h"
#include "model/schedule/scheduler_config.h"

namespace sdtune::train {

namespace {

constexpr const char* kKey = "rescale_betas_zero_snr";
constexpr const char* kPaperClass = "DDIMScheduler";

// By the class's own keys; a config keeps those of other classes too.
bool knows_rescaled_betas(const std::string& class_name) {
  return model::make_scheduler(class_name, Json::object(), class_name)->config().contains(kKey);
}

}  // namespace

std::vector<Problem> zero_snr_problems(const ObjectiveOptions& options, const Json& scheduler_config) {
  if (!options.rescale_betas_zero_snr) return {};
  if (model::prediction_type_of(scheduler_config) == model::PredictionType::kVPrediction) return {};
  const std::string type = scheduler_config.value("prediction_type", "epsilon");
  return {{kKey, "needs a base that predicts v (got true with prediction_type " + type + "; allowed: false)",
           "at the last timestep the input is the noise that it would have to predict"}};
}

std::string rescale_to_zero_snr(model::ModelBundle& bundle) {
  std::string note;
  const bool changes_class = !knows_rescaled_betas(bundle.scheduler_class);
  if (changes_class) {
    note = "the result's scheduler is DDIMScheduler: " + bundle.scheduler_class + " knows no zero terminal SNR";
    bundle.scheduler_class = kPaperClass;
  }
  bundle.scheduler_config = model::given_keys(bundle.scheduler_config);
  // DDIM's default clips to -1 .. 1, which is for pixels.
  if (changes_class && !bundle.scheduler_config.contains("clip_sample")) bundle.scheduler_config["clip_sample"] = false;
  bundle.scheduler_config[kKey] = true;
  bundle.scheduler_config["timestep_spacing"] = "trailing";
  return note;
}

}  // namespace sdtune::train
