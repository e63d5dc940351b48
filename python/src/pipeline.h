// A loaded Stable Diffusion folder as Python holds it.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "model/files/model_note.h"
#include "model/generate/image_generator.h"
#include "model/lora/lora_weights.h"
#include "model/pipeline/bundle.h"
#include "python/src/use_scope.h"

namespace sdtune::python {

// Every method but the plain getters, set_interrupted and encode_images takes the pipeline for itself (UseScope).
class Pipeline {
 public:
  // `note`: of the folder that the bundle was read from.
  explicit Pipeline(model::ModelBundle bundle, ModelNote note = {});
  virtual ~Pipeline() = default;

  model::ModelBundle& bundle() { return bundle_; }
  pybind11::object scheduler() const { return scheduler_; }
  void set_scheduler(const pybind11::object& scheduler);  // TypeError for anything but a scheduler

  // The keywords of call_options() -> out.images.
  pybind11::object generate(const pybind11::object& prompt, const pybind11::kwargs& keywords);
  // What conditions the UNet on the texts: (prompt, negative), for SDXL (prompt, negative, pooled, negative pooled), as
  // diffusers' encode_prompt.
  pybind11::tuple encode(const pybind11::object& prompt, const pybind11::kwargs& keywords);
  // The means [B, C, h, w] that the VAE gives for images [B, 3, H, W] in [-1, 1], in float32 where it asks for that
  // (force_upcast). Without UseScope, since callbacks of the pipeline's own call need them.
  torch::Tensor encode_images(const torch::Tensor& images) const;
  void save(const std::filesystem::path& folder, const pybind11::object& dtype);
  void move_to(const pybind11::object& device, const pybind11::object& dtype);
  // diffusers' _interrupt, which a callback of a call sets: the steps that are left are not run. Each call unsets it.
  bool is_interrupted() const { return is_interrupted_.load(); }
  void set_interrupted(bool value) { is_interrupted_.store(value); }
  void load_vae(const std::filesystem::path& path);
  void set_vae_tiling(bool tiling);
  void set_vae_slicing(bool slicing);

  // Textual inversions.
  void load_textual_inversion(const std::filesystem::path& path, const std::string& token);
  void unload_textual_inversions();

  // LoRAs; a file again replaces itself.
  void load_lora(const std::filesystem::path& path, double scale);
  void unload_loras();  // what was fused stays
  void fuse_loras();
  void unfuse_loras();

 private:
  model::ModelBundle bundle_;
  ModelNote note_;
  model::ImageGenerator generator_{bundle_};
  pybind11::object scheduler_;
  std::vector<model::FusedBranch> fused_;
  std::atomic<bool> is_interrupted_{false};
  PipelineUse use_;
};

// A subclass, so that Python's type says which kind it is.
class XLPipeline : public Pipeline {
  using Pipeline::Pipeline;
};

// What a call returns.
struct PipelineOutput {
  pybind11::object images;
};

// What on_step of a call gets.
struct SampleEvent {
  std::int64_t step = 0;   // 1..total
  std::int64_t total = 0;  // calls of the UNet
  double timestep = 0;
  torch::Tensor latents;  // [B, C, h, w]
};

// "float32" of "float32" and of torch.float32, which Python shows as "torch.float32".
std::string dtype_text(const pybind11::handle& object);
torch::Dtype dtype_of(const pybind11::handle& object);
// What from_pretrained's dtype means on the device. Warns in Python of `auto` on a processor that no table knows; takes
// the interpreter's lock for that.
torch::Dtype dtype_on(const std::string& asked, torch::Device device);

}  // namespace sdtune::python
