#include "app/commands/sample_options.h"

#include <utility>

#include "app/commands/sampler_names.h"

namespace sdtune::app {
namespace {

FieldInfo text_field(std::string name, std::string help, std::string group, std::string placeholder) {
  FieldInfo info{.name = std::move(name), .help = std::move(help), .group = std::move(group)};
  info.placeholder = std::move(placeholder);
  return info;
}

FieldInfo number_field(std::string name, std::string help, std::string unit, double min, double max) {
  FieldInfo info{.name = std::move(name), .help = std::move(help), .group = "Picture", .unit = std::move(unit)};
  info.min = min;
  info.max = max;
  return info;
}

void add_picture_fields(SampleOptions& options, FieldList& list) {
  FieldInfo steps = number_field("steps", "Sampling steps.", "steps", 1, 1000);
  steps.aliases = {"num_inference_steps"};
  FieldInfo images =
      number_field("num_images", "Pictures of each prompt; picture i (from 0) uses seed + i.", "", 1, 100000);
  images.aliases = {"num_images_per_prompt"};
  FieldInfo sampler =
      text_field("sampler", "How the noise is taken away; none: as the model's folder says.", "Picture", "NAME");
  sampler.choices = sampler_names();
  FieldInfo syntax = text_field("prompt_syntax",
                                "weighted: (word:1.2), [word] and BREAK as in web interfaces, prompts of any length; "
                                "plain: as diffusers, cut at 77 tokens.",
                                "Picture", "NAME");
  syntax.choices = {"weighted", "plain"};
  constexpr double kMostLayers = 64;
  constexpr double kLargestSize = 4096;
  list.push_back({text_field("prompt", "What to draw.", "Picture", "TEXT"), &options.prompt});
  list.push_back(
      {text_field("prompts",
                  "Prompts from a YAML list or a text file, one a line, with kohya's flags; portraits is installed.",
                  "Picture", "FILE"),
       &options.prompts});
  list.push_back({text_field("like",
                             "Draws this PNG again from its text: prompt, model and every option, where flags do not "
                             "say otherwise.",
                             "Picture", "FILE.png"),
                  &options.like});
  list.push_back({text_field("trigger",
                             "What {trigger} in a prompt stands for; empty: the words that the model was trained to "
                             "draw, for a base \"a person\".",
                             "Picture", "TEXT"),
                  &options.trigger});
  list.push_back({text_field("negative_prompt", "What the picture should not show.", "Picture", "TEXT"),
                  &options.negative_prompt});
  list.push_back({std::move(syntax), &options.prompt_syntax});
  list.push_back({number_field("clip_skip",
                               "Layers of the text encoder left out at the end, as diffusers counts: 1 is the "
                               "penultimate, which web interfaces and kohya call 2.",
                               "layers", 0, kMostLayers),
                  &options.clip_skip});
  list.push_back({std::move(images), &options.num_images});
  list.push_back({std::move(steps), &options.steps});
  list.push_back({number_field("guidance_scale", "Classifier-free guidance; at most 1 switches it off.", "", 0, 100),
                  &options.guidance_scale});
  list.push_back({number_field("guidance_rescale",
                               "How much of the guided prediction's contrast is taken back to the prompt's own; for "
                               "models trained to zero terminal SNR 0.7.",
                               "", 0, 1),
                  &options.guidance_rescale});
  list.push_back({number_field("eta", "Share of fresh noise in each step of ddim; the others have none.", "", 0, 1),
                  &options.eta});
  list.push_back({number_field("seed", "Seed of the first picture.", "", 0, 1e14), &options.seed});
  list.push_back({std::move(sampler), &options.sampler});
  list.push_back(
      {number_field("width", "Width; none: the model's own. A multiple of the VAE's factor.", "px", 8, kLargestSize),
       &options.width});
  list.push_back(
      {number_field("height", "Height; none: the model's own. A multiple of the VAE's factor.", "px", 8, kLargestSize),
       &options.height});
}

void add_start_fields(SampleOptions& options, FieldList& list) {
  const std::string group = "From a picture, and larger";
  FieldInfo strength = number_field("strength", "Share of the steps that are run from --init-image.", "", 0, 1);
  FieldInfo scale =
      number_field("hires_scale", "Draws again at this many times the size, from the latents enlarged.", "times", 1, 8);
  FieldInfo steps =
      number_field("hires_steps", "Sampling steps of that second pass; none: as --steps.", "steps", 1, 1000);
  FieldInfo share = number_field("hires_strength", "Share of these steps that are run.", "", 0, 1);
  strength.exclusive_min = share.exclusive_min = true;
  for (FieldInfo* info : {&strength, &scale, &steps, &share}) info->group = group;
  list.push_back({text_field("init_image",
                             "Picture to begin with, brought to --width and --height, or down to the model's number "
                             "of pixels.",
                             group, "FILE"),
                  &options.init_image});
  list.push_back({std::move(strength), &options.strength});
  list.push_back({std::move(scale), &options.hires_scale});
  list.push_back({std::move(steps), &options.hires_steps});
  list.push_back({std::move(share), &options.hires_strength});
}

void add_grid_fields(SampleOptions& options, FieldList& list) {
  const std::string group = "One picture of all";
  list.push_back(
      {text_field("grid", "Also all pictures in one: a column a prompt, a row an image (a single prompt: one row).",
                  group, "FILE.png"),
       &options.grid});
  list.push_back({text_field("compare", "Another model; its pictures of the same prompts and seeds stand above.", group,
                             "DIR|ORG/NAME"),
                  &options.compare});
  list.push_back({text_field("references", "Photos for the first row.", group, "DIR"), &options.references});
}

void add_machine_fields(SampleOptions& options, FieldList& list) {
  const std::string group = "Model and machine";
  FieldInfo model = text_field("model",
                               "Diffusers folder, run folder or hub id in the local cache; empty: the newest "
                               "finished run under runs/, else the embedded base.",
                               group, "DIR|ORG/NAME");
  model.aliases = {"base", "pretrained_model_name_or_path"};
  FieldInfo output = text_field("output", "Folder for the pictures.", group, "DIR");
  output.aliases = {"output_dir"};
  FieldInfo batch{
      .name = "batch", .help = "Pictures drawn at once; changes no picture beyond rounding.", .group = group};
  batch.aliases = {"batch_size"};
  batch.min = 1;
  batch.max = 1024;
  FieldInfo dtype = text_field("dtype", "What to compute in; auto: the fastest that the device has.", group, "DTYPE");
  dtype.choices = {"auto", "float32", "bfloat16", "float16"};
  list.push_back({std::move(model), &options.model});
  list.push_back({std::move(output), &options.output});
  list.push_back({FieldInfo{.name = "ai_mark",
                            .help = "Write into each picture that it is generated, as IPTC metadata.",
                            .group = group},
                  &options.ai_mark});
  list.push_back({std::move(batch), &options.batch});
  list.push_back({text_field("vae", "Another autoencoder: a folder of one or of a whole model, or a safetensors file.",
                             group, "DIR|FILE"),
                  &options.vae});
  list.push_back({text_field("embedding",
                             "Textual inversion, a safetensors file, and the word that calls it; without one the "
                             "file's name. May be given more than once.",
                             group, "FILE[:TOKEN]"),
                  &options.embedding});
  list.push_back({text_field("lora",
                             "LoRA file or run folder, with a weight behind ':' where it is not 1. May be given more "
                             "than once.",
                             group, "FILE[:WEIGHT]"),
                  &options.lora});
  list.push_back({text_field("lora_dir", "Where <lora:NAME:WEIGHT> in a prompt finds NAME.safetensors.", group, "DIR"),
                  &options.lora_dir});
  list.push_back({FieldInfo{.name = "vae_tiling",
                            .help = "Decode pictures above the VAE's sample_size in blended tiles: less memory, "
                                    "slightly other pixels.",
                            .group = group},
                  &options.vae_tiling});
  list.push_back({FieldInfo{.name = "vae_slicing",
                            .help = "Decode the pictures of a batch one at a time: less memory, the same pixels.",
                            .group = group},
                  &options.vae_slicing});
  list.push_back({text_field("device", "auto, cpu, cuda or cuda:N.", group, "DEVICE"), &options.device});
  list.push_back({std::move(dtype), &options.dtype});
  list.push_back(
      {text_field("config", "YAML file with options; flags win over it.", group, "FILE.yaml"), &options.config});
}

}  // namespace

FieldList SampleOptions::fields() {
  FieldList list;
  add_picture_fields(*this, list);
  add_start_fields(*this, list);
  add_grid_fields(*this, list);
  add_machine_fields(*this, list);
  return list;
}

}  // namespace sdtune::app
