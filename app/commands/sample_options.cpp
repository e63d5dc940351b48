#include "app/commands/sample_options.h"

#include "model/options/option_group.h"

namespace sdtune::app {
namespace {

void add_prompt_options(SampleOptions& options, FieldList& list) {
  OptionGroup group(list, "Prompts");
  group
      .add("prompts", &options.prompts,
           "Prompts from a YAML list or a text file, one a line, with kohya's flags; portraits is installed.")
      .placeholder("FILE");
  group
      .add("like", &options.like,
           "Generates this PNG again from its metadata: prompt, model and every option, where flags do not say "
           "otherwise.")
      .placeholder("FILE.png");
  group
      .add("trigger", &options.trigger,
           "What {trigger} in a prompt stands for; empty: the words that the model was trained with, for a base "
           "\"a person\".")
      .placeholder("TEXT");
  group.add("lora_dir", &options.lora_dir, "Where <lora:NAME:WEIGHT> in a prompt finds NAME.safetensors.")
      .placeholder("DIR");
}

void add_grid_options(SampleOptions& options, FieldList& list) {
  OptionGroup group(list, "Grid of all images");
  group
      .add("grid", &options.grid,
           "Also all images in one: a column a prompt, a row an image (a single prompt: one row).")
      .placeholder("FILE.png");
  group.add("compare", &options.compare, "Another model; its images of the same prompts and seeds stand above.")
      .placeholder("DIR|ORG/NAME");
  group.add("references", &options.references, "Photos for the first row.").placeholder("DIR");
}

void add_run_options(SampleOptions& options, FieldList& list) {
  OptionGroup group(list, "Model and machine");
  group
      .add("model", &options.model,
           "Diffusers folder, run folder or hub id in the local cache; empty: the newest finished run under runs/, "
           "else the bundled base.")
      .placeholder("DIR|ORG/NAME")
      .aliases({"base", "pretrained_model_name_or_path"});
  group.add("output", &options.output, "Folder for the images.").placeholder("DIR").aliases({"output_dir"});
  group.add("batch", &options.batch, "Images generated at once; changes no image beyond rounding.")
      .range(1, 1024)
      .aliases({"batch_size"});
  group.add("config", &options.config, "YAML file with options; flags override it.").placeholder("FILE.yaml");
}

}  // namespace

FieldList SampleOptions::fields() {
  FieldList list = image.fields();
  add_prompt_options(*this, list);
  add_grid_options(*this, list);
  add_run_options(*this, list);
  return list;
}

}  // namespace sdtune::app
