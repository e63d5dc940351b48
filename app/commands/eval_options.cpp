#include "app/commands/eval_options.h"

#include "model/options/option_group.h"
#include "train/portrait/renderer/portrait_set.h"

namespace sdtune::app {
namespace {

void add_subject(OptionGroup group, EvalOptions& options) {
  const auto reserved = static_cast<double>(train::portrait::people_in(train::portrait::PortraitSet::kReserved));
  group
      .add("images", &options.images,
           "Photos that the model was trained on, from `sdtune render --subject`; empty: the subject's first five "
           "views.")
      .aliases({"instance_data_dir"})
      .placeholder("DIR");
  group.add("subject", &options.subject, "Reserved person in the photos; unset: from labels.jsonl beside the photos.")
      .range(0, reserved - 1);
  group
      .add("instance_prompt", &options.instance_prompt,
           "Prompt of the subject: \"a photo of\" and its words; unset: as noted in the model.")
      .placeholder("TEXT");
  group.add("class_prompt", &options.class_prompt, "Prompt of its class: \"a photo of\" and its words.")
      .placeholder("TEXT");
}

void add_model(OptionGroup group, EvalOptions& options) {
  group
      .add("model", &options.model,
           "Trained model: a diffusers folder or run folder; empty: the newest finished run under runs/.")
      .placeholder("DIR");
  group
      .add("base", &options.base,
           "Model before training, for comparison; empty: the one that the run or LoRA was trained from, else the "
           "bundled base.")
      .aliases({"pretrained_model_name_or_path"})
      .placeholder("DIR|ORG/NAME");
  group
      .add("classifier", &options.classifier,
           "Portrait classifier: a folder, portrait-judge or portrait-judge-128; empty: the one for the size of the "
           "base.")
      .aliases({"judge"})
      .placeholder("DIR");
  group.add("device", &options.device, "Device: auto, cpu, cuda or cuda:N.").placeholder("DEVICE");
  group
      .add("dtype", &options.dtype,
           "Number format of the computation; default: bfloat16 on a GPU from compute capability 8.0, float16 on an "
           "older one, float32 on a CPU; auto: the fastest, on a CPU by the table of processors (sdtune tune-machine).")
      .choices({"default", "auto", "float32", "bfloat16", "float16"})
      .placeholder("DTYPE");
}

void add_images(OptionGroup group, EvalOptions& options) {
  group.add("num_images", &options.num_images, "Images of the subject per prompt, each from trained model and base.")
      .range(1, 1000);
  group
      .add("num_class_images", &options.num_class_images,
           "Images of the class prompt, each from trained model and base.")
      .range(16, 100000);
  group.add("quick", &options.quick,
            "One image per prompt and 32 of the class: wide confidence intervals, less than a third of the time.");
  group.add("steps", &options.steps, "Sampling steps.").aliases({"num_inference_steps"}).unit("steps").range(1, 1000);
  group.add("guidance_scale", &options.guidance_scale, "Classifier-free guidance; 1 or less: disabled.").range(0, 100);
  group.add("seed", &options.seed, "Seed of the first image; image i (from 0) uses seed + i.").range(0, 1e14);
}

void add_output(OptionGroup group, EvalOptions& options) {
  group.add("output", &options.output, "Folder for eval.json and sheet.png.")
      .aliases({"output_dir"})
      .placeholder("DIR");
  group.add("json", &options.json, "Print the result as one JSON object.");
  group.add("config", &options.config, "YAML file with options; flags override it.").placeholder("FILE.yaml");
}

}  // namespace

FieldList EvalOptions::fields() {
  FieldList list;
  add_subject({list, "Subject"}, *this);
  add_model({list, "Model and machine"}, *this);
  add_images({list, "Images"}, *this);
  add_output({list, "Output"}, *this);
  return list;
}

}  // namespace sdtune::app
