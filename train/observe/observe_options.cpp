#include "train/observe/observe_options.h"

#include <utility>

namespace sdtune::train {

namespace {

FieldInfo field(std::string name, std::string help) {
  return {.name = std::move(name), .help = std::move(help), .group = "Validation and logs"};
}

}  // namespace

FieldList ObserveOptions::fields() {
  FieldInfo prompt = field("validation_prompt", "Draw pictures of this prompt while training; empty draws none.");
  prompt.placeholder = "TEXT";
  FieldInfo held_out = field("validation_data_dir",
                             "Photos that are not trained on: their loss, with the same noise each time, goes into "
                             "validation.jsonl; empty: none.");
  held_out.placeholder = "DIR";
  FieldInfo negative = field("validation_negative_prompt", "What the validation pictures should not show.");
  negative.placeholder = "TEXT";
  FieldInfo count = field("num_validation_images", "Pictures drawn at each validation.");
  count.min = 1;
  count.max = 64;
  FieldInfo every = field("validation_steps", "Optimizer steps between two validations.");
  every.unit = "steps";
  every.min = 1;
  FieldInfo inference = field("validation_inference_steps", "Sampling steps of a validation picture.");
  inference.unit = "steps";
  inference.min = 1;
  inference.max = 1000;
  FieldInfo guidance = field("validation_guidance_scale", "Classifier-free guidance of the validation pictures.");
  guidance.min = 0;
  guidance.max = 100;
  FieldInfo report = field("report_to", "Further log besides metrics.jsonl.");
  report.choices = {"tensorboard", "none"};
  FieldInfo price =
      field("price_per_hour", "Of the machine, in any money: report.html then tells the cost; none: no cost.");
  price.min = 0;
  FieldList list;
  list.push_back({std::move(prompt), &validation_prompt});
  list.push_back({std::move(held_out), &validation_data_dir});
  list.push_back({std::move(negative), &validation_negative_prompt});
  list.push_back({std::move(count), &num_validation_images});
  list.push_back({std::move(every), &validation_steps});
  list.push_back({std::move(inference), &validation_inference_steps});
  list.push_back({std::move(guidance), &validation_guidance_scale});
  list.push_back({std::move(report), &report_to});
  list.push_back({std::move(price), &price_per_hour});
  return list;
}

}  // namespace sdtune::train
