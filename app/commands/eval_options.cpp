#include "app/commands/eval_options.h"

#include <utility>

#include "train/portrait/portrait_set.h"

namespace sdtune::app {
namespace {

FieldInfo field(std::string name, std::string help, std::string group, std::string placeholder = "") {
  FieldInfo info{.name = std::move(name), .help = std::move(help), .group = std::move(group)};
  info.placeholder = std::move(placeholder);
  return info;
}

FieldInfo number(std::string name, std::string help, std::string group, double min, double max) {
  FieldInfo info = field(std::move(name), std::move(help), std::move(group));
  info.min = min;
  info.max = max;
  return info;
}

void add_subject_fields(EvalOptions& options, FieldList& list) {
  const std::string group = "Subject";
  const auto reserved = static_cast<double>(train::portrait::people_in(train::portrait::PortraitSet::kReserved));
  FieldInfo images = field("images",
                           "Photos that the model was tuned on, from `sdtune render --subject`; empty: the subject's "
                           "first five views.",
                           group, "DIR");
  images.aliases = {"instance_data_dir"};
  list.push_back({std::move(images), &options.images});
  list.push_back({number("subject", "Reserved person they show; none: as labels.jsonl beside the photos says.", group,
                         0, reserved - 1),
                  &options.subject});
  list.push_back(
      {field("instance_prompt", "What stands for the subject: \"a photo of\" and its words; none: as the model notes.",
             group, "TEXT"),
       &options.instance_prompt});
  list.push_back({field("class_prompt", "What stands for its class: \"a photo of\" and its words.", group, "TEXT"),
                  &options.class_prompt});
}

void add_model_fields(EvalOptions& options, FieldList& list) {
  const std::string group = "Model and machine";
  FieldInfo base = field("base", "Model before tuning, to compare with.", group, "DIR|ORG/NAME");
  base.aliases = {"pretrained_model_name_or_path"};
  FieldInfo dtype = field("dtype", "What to compute in; auto: the fastest that the device has.", group, "DTYPE");
  dtype.choices = {"auto", "float32", "bfloat16", "float16"};
  list.push_back(
      {field("model", "Tuned model: a diffusers folder or run folder; empty: the newest finished run under runs/.",
             group, "DIR"),
       &options.model});
  list.push_back({std::move(base), &options.base});
  list.push_back({field("judge", "Folder of the judge; empty: the installed one.", group, "DIR"), &options.judge});
  list.push_back({field("device", "auto, cpu, cuda or cuda:N.", group, "DEVICE"), &options.device});
  list.push_back({std::move(dtype), &options.dtype});
}

void add_picture_fields(EvalOptions& options, FieldList& list) {
  const std::string group = "Pictures";
  FieldInfo steps = number("steps", "Sampling steps.", group, 1, 1000);
  steps.unit = "steps";
  steps.aliases = {"num_inference_steps"};
  FieldInfo output = field("output", "Folder for eval.json and sheet.png.", group, "DIR");
  output.aliases = {"output_dir"};
  list.push_back(
      {number("num_images", "Pictures of the subject for each prompt, from tuned model and base.", group, 1, 1000),
       &options.num_images});
  list.push_back(
      {number("num_class_images", "Pictures of the class prompt, from tuned model and base.", group, 16, 100000),
       &options.num_class_images});
  list.push_back(
      {field("quick", "One picture a prompt and 32 of the class: wide intervals, a fifth of the time.", group),
       &options.quick});
  list.push_back({std::move(steps), &options.steps});
  list.push_back({number("guidance_scale", "Classifier-free guidance; at most 1 switches it off.", group, 0, 100),
                  &options.guidance_scale});
  list.push_back(
      {number("seed", "Seed of the first picture; picture i (from 0) uses seed + i.", group, 0, 1e14), &options.seed});
  list.push_back({std::move(output), &options.output});
  list.push_back({field("json", "Print the result as one JSON object.", group), &options.json});
  list.push_back({field("config", "YAML file with options; flags win over it.", group, "FILE.yaml"), &options.config});
}

}  // namespace

FieldList EvalOptions::fields() {
  FieldList list;
  add_subject_fields(*this, list);
  add_model_fields(*this, list);
  add_picture_fields(*this, list);
  return list;
}

}  // namespace sdtune::app
