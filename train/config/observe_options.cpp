#include "train/config/observe_options.h"

#include <algorithm>

namespace sdtune::train {

namespace {

void add_validation(TrainOptionGroup& group, ObserveOptions& options) {
  group
      .add("validation_prompt", &options.validation_prompt, Resume::kMayChange,
           "Generate images from this prompt during training; empty: disabled.")
      .placeholder("TEXT");
  group
      .add("validation_data_dir", &options.validation_data_dir, Resume::kMayChange,
           "Photos that are not trained on: their loss, always with the same noise, is written to validation.jsonl; "
           "empty: disabled.")
      .placeholder("DIR");
  group
      .add("validation_negative_prompt", &options.validation_negative_prompt, Resume::kMayChange,
           "Negative prompt of the validation images.")
      .placeholder("TEXT");
  group.add("num_validation_images", &options.num_validation_images, Resume::kMayChange, "Images per validation.")
      .range(1, 64);
  group.add("validation_steps", &options.validation_steps, Resume::kMayChange, "Optimizer steps between validations.")
      .unit("steps")
      .at_least(1);
  group
      .add("validation_inference_steps", &options.validation_inference_steps, Resume::kMayChange,
           "Sampling steps of a validation image.")
      .unit("steps")
      .range(1, 1000);
  group
      .add("validation_guidance_scale", &options.validation_guidance_scale, Resume::kMayChange,
           "Classifier-free guidance of the validation images; 1 or less: disabled; unset: 7.5, for SDXL 5.")
      .range(0, 100);
}

void add_trackers(TrainOptionGroup& group, ObserveOptions& options) {
  group
      .add(
          "report_to", &options.report_to, Resume::kMayChange,
          "Where values, options and validation images go besides the run folder: wandb, mlflow and trackio need their "
          "Python package; all: tensorboard and those that are installed.")
      .choices({"tensorboard", "wandb", "mlflow", "trackio", "all", "none"});
  group.add("report_model", &options.report_model, Resume::kMayChange,
            "Give the model to wandb, mlflow and trackio as an artifact when the run is done.");
  group
      .add("tracker_project_name", &options.tracker_project_name, Resume::kMayChange,
           "Project (MLflow: experiment) of the run; empty: WANDB_PROJECT, MLFLOW_EXPERIMENT_NAME or TRACKIO_PROJECT, "
           "else sdtune.")
      .placeholder("NAME");
  group
      .add("tracker_run_name", &options.tracker_run_name, Resume::kMayChange,
           "Name of the run in wandb, mlflow and trackio; empty: that of the run folder.")
      .aliases({"wandb_run_name"})
      .placeholder("NAME");
  group
      .add("tracker_timeout", &options.tracker_timeout, Resume::kMayChange,
           "Time that the end of the run waits at most until wandb, mlflow and trackio have everything.")
      .unit("s")
      .range(0, 86400);
}

}  // namespace

TrainFieldList ObserveOptions::fields() {
  TrainFieldList list;
  TrainOptionGroup group(list, "Validation and logs");
  add_validation(group, *this);
  add_trackers(group, *this);
  group
      .add("price_per_hour", &price_per_hour, Resume::kMayChange,
           "Machine price per hour, any currency: report.html then states the cost, and max_cost bounds it; unset: "
           "disabled.")
      .at_least(0);
  group
      .add("report_images", &report_images, Resume::kMayChange,
           "Images of the base and of the model each, of the same prompt and seeds, that are generated at the end for "
           "report.html: fewer where they would take more than 5 % of the run's time; 0: disabled.")
      .range(0, 16);
  group
      .add("profile", &profile, Resume::kMayChange,
           "Optimizer steps to profile, behind the first two: profile/trace.json of the run folder for the viewers of "
           "Chrome and Perfetto, and the ten operators that take longest; 0: disabled.")
      .unit("steps")
      .range(0, 1000);
  return list;
}

std::vector<Problem> observe_problems(const ObserveOptions& options) {
  const std::vector<std::string>& names = options.report_to;
  const bool is_none = std::find(names.begin(), names.end(), "none") != names.end();
  const bool has_others = std::any_of(names.begin(), names.end(), [](const auto& name) { return name != "none"; });
  if (!is_none || !has_others) return {};
  return {{"report_to", "none is given together with other trackers", "leave none out, or the others"}};
}

}  // namespace sdtune::train
