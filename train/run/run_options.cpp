#include "train/run/run_options.h"

#include <utility>

namespace sdtune::train {

namespace {

FieldInfo field(std::string name, std::string help, std::string group) {
  return {.name = std::move(name), .help = std::move(help), .group = std::move(group)};
}

void add_run_fields(RunOptions& options, FieldList& list) {
  const std::string group = "Run";
  FieldInfo base = field(
      "base",
      "Model to start from: a diffusers folder, or a hub id in the local cache; empty: portrait-64, the embedded base.",
      group);
  base.aliases = {"pretrained_model_name_or_path"};
  base.placeholder = "DIR|ORG/NAME";
  FieldInfo output = field("output", "Run folder; empty: runs/<name of the photo folder>.", group);
  output.aliases = {"output_dir"};
  output.placeholder = "DIR";
  FieldInfo method =
      field("method", "What is trained: full is every weight, lora two small matrices for each of some layers.", group);
  method.choices = {"full", "lora"};
  FieldInfo device = field("device", "auto, cpu, cuda or cuda:N.", group);
  device.placeholder = "DEVICE";
  FieldInfo seed = field("seed", "Seed of all random draws.", group);
  seed.min = 0;
  list.push_back({std::move(base), &options.base});
  list.push_back({std::move(output), &options.output});
  list.push_back(
      {field("overwrite", "Delete the run that is in the output folder and start again.", group), &options.overwrite});
  list.push_back({std::move(method), &options.method});
  list.push_back({std::move(device), &options.device});
  list.push_back({std::move(seed), &options.seed});
}

FieldInfo count_field(std::string name, std::string help, std::string unit) {
  FieldInfo info = field(std::move(name), std::move(help), "Training");
  info.unit = std::move(unit);
  info.min = 1;
  info.max = 1e7;
  return info;
}

void add_training_fields(RunOptions& options, FieldList& list) {
  FieldInfo micro = field(
      "micro_batch",
      "Photos computed at once, to save memory; must divide the batch. auto: as many as fit, found by a trial step.",
      "Training");
  micro.placeholder = "N|auto";
  list.push_back({count_field("max_train_steps", "Optimizer steps; none: 100 a photo, at most 1200.", "steps"),
                  &options.max_train_steps});
  list.push_back({count_field("num_train_epochs", "Passes over the photos, when max_train_steps is not given.", ""),
                  &options.num_train_epochs});
  list.push_back({count_field("train_batch_size", "Photos a rank takes in one round.", ""), &options.train_batch_size});
  list.push_back({count_field("gradient_accumulation_steps", "Rounds that make one optimizer step.", ""),
                  &options.gradient_accumulation_steps});
  list.push_back({std::move(micro), &options.micro_batch});
  list.push_back(
      {field("gradient_checkpointing", "Recompute activations in backward: less memory, slower.", "Training"),
       &options.gradient_checkpointing});
  list.push_back({field("train_text_encoder", "Train the text encoder(s) beside the UNet.", "Training"),
                  &options.train_text_encoder});
}

}  // namespace

FieldList RunOptions::fields() {
  FieldList list;
  add_run_fields(*this, list);
  add_training_fields(*this, list);
  return list;
}

}  // namespace sdtune::train
