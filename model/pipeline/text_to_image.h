// Prompt to latents to image: what diffusers' StableDiffusionPipeline, StableDiffusionXLPipeline and their Img2Img
// variants do, with the same numbers for the same seed.
#pragma once

#include <torch/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/pipeline/bundle.h"
#include "model/pipeline/text_conditions.h"
#include "model/schedule/scheduler.h"

namespace sdtune::model {

// What an observer of the denoising loop sees after each step.
struct SampleProgress {
  std::int64_t step = 0;   // 1..total
  std::int64_t total = 0;  // calls of the UNet
  double timestep = 0.0;
  const torch::Tensor& latents;  // [B, C, h, w]
};

// A second pass over the image enlarged: A1111's "hires. fix" with its latent upscaler.
struct HiresOptions {
  double scale = 1.0;      // of width and height, down to whole latent cells; 1 = no second pass
  std::int64_t steps = 0;  // as SampleRequest::steps; 0 = the same
  double strength = 0.7;   // as SampleRequest::strength
};

struct SampleRequest {
  std::vector<std::string> prompts;            // an image each; repeat a prompt for more images of it
  std::optional<std::string> negative_prompt;  // absent and "" differ for SDXL with force_zeros_for_empty_prompt
  PromptRules prompt_rules;                    // of both texts
  std::int64_t steps = 50;                     // inference steps
  std::vector<std::int64_t> timesteps;         // run over these instead, see Scheduler::set_timesteps; empty = steps
  std::int64_t height = 0;                     // px, a multiple of the VAE's factor; 0 = the UNet's sample_size
  std::int64_t width = 0;                      // px
  double guidance_scale = 7.5;                 // <= 1: no classifier-free guidance
  double guidance_rescale = 0.0;               // Lin et al. 2023, section 3.4
  double eta = 0.0;                            // DDIM only
  std::vector<std::uint64_t> seeds = {0};      // one: a generator for the whole batch; or one for each image
  std::vector<at::Generator> generators;       // instead of seeds: CPU generators, which keep their state
  torch::Tensor latents;                       // [B, C, h, w]: start from these instead of noise; undefined = noise
  torch::Tensor image;  // image to image: [1 or B, 3, H, W] in [-1, 1], or latents [1 or B, C, h, w]; undefined = none
  double strength = 0.8;  // of image to image: the last int(steps x strength) steps are run; 0 < strength <= 1
  HiresOptions hires;
  std::optional<std::array<std::int64_t, 2>>
      original_size;  // SDXL micro-conditioning: height, width; absent = the size
  std::array<std::int64_t, 2> crops_coords_top_left = {0, 0};  // SDXL: top, left
};

// What the denoising loop reports and asks while it runs. No part of the request, which is copied for a second pass: a
// callback may hold what only its own thread may copy (a Python object).
struct SampleCallbacks {
  std::function<void(const SampleProgress&)> on_step = {};  // may be empty
  const std::atomic<bool>* stop = nullptr;                  // set from elsewhere: sampling ends after this step
  const std::atomic<bool>* interrupt = nullptr;             // likewise, and its latents are the result
};

struct PixelSize {
  std::int64_t height = 0;  // px
  std::int64_t width = 0;   // px
};

// The scheduler that diffusers' pipeline of this bundle would run: the bundle's own.
std::unique_ptr<Scheduler> make_sampler(const ModelBundle& bundle);
// Another solver of the bundle's noise schedule, as diffusers' pipeline is with
// `class_name.from_config(pipe.scheduler.config, **changes)`: of the config only what was given counts, with `changes`
// over it. Latents are clipped only where SDXL's config says so.
std::unique_ptr<Scheduler> make_sampler(const ModelBundle& bundle, const std::string& class_name, const Json& changes);

// The size of the first pass: as asked for, else the init image's, else the model's own. Throws ConfigError naming
// "height", "width" or "image" for what is no multiple of the VAE's factor or does not fit the image.
PixelSize first_pass_size(const ModelBundle& bundle, const SampleRequest& request);

// The size of the result: the first pass's, or with hires.scale that of the second.
PixelSize output_size(const ModelBundle& bundle, const SampleRequest& request);

// [B, C, h, w] in the UNet's dtype and on its device; undefined when `stop` ended it. Throws ConfigError naming the
// option for a size, count or seed list that does not fit.
torch::Tensor generate_latents(ModelBundle& bundle, Scheduler& scheduler, const SampleRequest& request,
                               const SampleCallbacks& callbacks = {});

// Latents [B, C, h, w] to images [B, 3, H, W] in [0, 1], float32, CPU or the VAE's device. In float32 where the VAE
// asks for it (force_upcast); see AutoencoderKL's set_slicing and set_tiling.
torch::Tensor decode_latents(ModelBundle& bundle, const torch::Tensor& latents);

}  // namespace sdtune::model
