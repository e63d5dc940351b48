#include "model/generate/generate_options.h"

#include <utility>

#include "model/generate/sampler_names.h"
#include "model/options/option_group.h"

namespace sdtune::model {
namespace {

constexpr double kMostLayers = 64;
constexpr double kLargestSize = 4096;  // px
constexpr double kLargestSeed = 1e14;  // exact as a double
constexpr double kMostSteps = 1000;

void add_text_options(GenerateOptions& options, FieldList& list) {
  OptionGroup group(list, "Image");
  group.add("prompt", &options.prompt, "Text that describes the image.").placeholder("TEXT");
  group.add("negative_prompt", &options.negative_prompt, "What the image should not show.").placeholder("TEXT");
  group
      .add("prompt_syntax", &options.prompt_syntax,
           "weighted: (word:1.2), [word] and BREAK as in web interfaces, prompts of any length; plain: as diffusers, "
           "cut at 75 tokens.")
      .placeholder("NAME")
      .choices({"weighted", "plain"});
  group
      .add("clip_skip", &options.clip_skip,
           "Layers of the text encoder left out at the end, as diffusers counts: 1 is the penultimate, which web "
           "interfaces and kohya call 2.")
      .unit("layers")
      .range(0, kMostLayers);
}

void add_sampling_options(GenerateOptions& options, FieldList& list) {
  OptionGroup group(list, "Image");
  group.add("num_images", &options.num_images, "Images of each prompt; image i (from 0) uses seed + i.")
      .range(1, 100000)
      .aliases({"num_images_per_prompt"})
      .not_in_metadata();
  group.add("steps", &options.steps, "Sampling steps.")
      .unit("steps")
      .range(1, kMostSteps)
      .aliases({"num_inference_steps"});
  group
      .add("guidance_scale", &options.guidance_scale,
           "Classifier-free guidance; 1 or less: disabled; unset: 7.5, for SDXL 5, as in diffusers.")
      .range(0, 100);
  group
      .add("guidance_rescale", &options.guidance_rescale,
           "Share by which the guided prediction's standard deviation is brought back to the prompt's own; 0.7 for "
           "models trained with zero terminal SNR.")
      .range(0, 1);
  group.add("eta", &options.eta, "Share of fresh noise in each step of ddim; other samplers ignore it.").range(0, 1);
  group.add("seed", &options.seed, "Seed of the first image.").range(0, kLargestSeed);
  group.add("sampler", &options.sampler, "Sampler; unset: the model's own scheduler.")
      .placeholder("NAME")
      .choices(sampler_names());
  group.add("width", &options.width, "Width, a multiple of the VAE's factor; unset: the model's own.")
      .unit("px")
      .range(8, kLargestSize);
  group.add("height", &options.height, "Height, a multiple of the VAE's factor; unset: the model's own.")
      .unit("px")
      .range(8, kLargestSize);
}

constexpr const char* kInitImageGroup = "Init image and second pass";

void add_pass_options(GenerateOptions& options, FieldList& list) {
  OptionGroup group(list, kInitImageGroup);
  group.add("strength", &options.strength, "Share of the steps that are run from an init image.").above(0).at_most(1);
  group.add("hires_scale", &options.hires_scale, "Second pass at this many times the size, from the upscaled latents.")
      .unit("times")
      .range(1, 8);
  group.add("hires_steps", &options.hires_steps, "Sampling steps of the second pass; unset: as --steps.")
      .unit("steps")
      .range(1, kMostSteps);
  group.add("hires_strength", &options.hires_strength, "Share of the second pass's steps that are run.")
      .above(0)
      .at_most(1);
}

void add_model_options(GenerateOptions& options, FieldList& list) {
  OptionGroup group(list, "Model and machine");
  group.add("vae", &options.vae, "Another autoencoder: a folder of one or of a whole model, or a safetensors file.")
      .placeholder("DIR|FILE");
  group
      .add("embedding", &options.embedding,
           "Textual inversion, a safetensors file, and its token in prompts; without one the file's name. May be "
           "given more than once.")
      .placeholder("FILE[:TOKEN]");
  group
      .add("lora", &options.lora,
           "LoRA file or run folder, with a weight behind ':' where it is not 1. May be given more than once.")
      .placeholder("FILE[:WEIGHT]");
  group.add("vae_tiling", &options.vae_tiling,
            "Decode images above the VAE's sample_size in blended tiles: less memory, slightly other pixels.");
  group.add("vae_slicing", &options.vae_slicing,
            "Decode the images of a batch one at a time: less memory, the same pixels.");
  group.add("ai_mark", &options.ai_mark, "Write into each image that it is generated, as IPTC metadata.");
  group.add("device", &options.device, "Device: auto, cpu, cuda or cuda:N.").placeholder("DEVICE");
  group
      .add("dtype", &options.dtype,
           "Number format of the computation; default: bfloat16 on a GPU from compute capability 8.0, float16 on an "
           "older "
           "one, float32 on a CPU; auto: the fastest, on a CPU by the table of processors (sdtune tune-machine).")
      .placeholder("DTYPE")
      .choices({"default", "auto", "float32", "bfloat16", "float16"});
  group.add("allow_tf32", &options.allow_tf32,
            "Use TF32 for float32 matrix products and convolutions on Ampere and later GPUs.");
}

}  // namespace

FieldList GenerateOptions::call_fields() {
  FieldList list;
  add_text_options(*this, list);
  add_sampling_options(*this, list);
  add_pass_options(*this, list);
  return list;
}

FieldList GenerateOptions::fields() {
  FieldList list = call_fields();
  OptionGroup(list, kInitImageGroup)
      .add("init_image", &init_image,
           "Image to begin with, resized to --width and --height, or down to the model's number of pixels.")
      .placeholder("FILE");
  add_model_options(*this, list);
  return list;
}

const std::string& python_keyword(const FieldInfo& info) {
  return info.aliases.empty() ? info.name : info.aliases.front();
}

}  // namespace sdtune::model
