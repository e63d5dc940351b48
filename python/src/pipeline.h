// A loaded Stable Diffusion folder as Python holds it.
#pragma once

#include <pybind11/pybind11.h>

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "model/lora/lora_weights.h"
#include "model/pipeline/bundle.h"

namespace sdtune::python {

class Pipeline {
 public:
  explicit Pipeline(model::ModelBundle bundle);
  virtual ~Pipeline() = default;

  model::ModelBundle& bundle() { return bundle_; }
  pybind11::object scheduler() const { return scheduler_; }
  void set_scheduler(const pybind11::object& scheduler);  // TypeError for anything but a scheduler

  // The keywords of diffusers' pipelines -> out.images.
  pybind11::object draw(const pybind11::object& prompt, const pybind11::kwargs& keywords);
  // What the UNet is told of the texts: (prompt, negative), for SDXL (prompt, negative, pooled, negative pooled), as
  // diffusers' encode_prompt.
  pybind11::tuple encode(const pybind11::object& prompt, const pybind11::kwargs& keywords);
  void save(const std::filesystem::path& folder, const pybind11::object& dtype);

  // LoRAs; a file again replaces itself.
  void load_lora(const std::filesystem::path& path, double scale);
  void unload_loras();  // fused ones too
  void fuse_loras();
  void unfuse_loras();

 private:
  model::ModelBundle bundle_;
  pybind11::object scheduler_;
  std::vector<model::FusedBranch> fused_;
  std::mutex busy_;  // a scheduler keeps the state of one run
};

// A subclass, so that Python's type says which kind it is.
class XLPipeline : public Pipeline {
  using Pipeline::Pipeline;
};

// What a call returns.
struct PipelineOutput {
  pybind11::object images;
};

// What on_step of a call is told.
struct SampleEvent {
  std::int64_t step = 0;   // 1..total
  std::int64_t total = 0;  // calls of the UNet
  double timestep = 0;
  torch::Tensor latents;  // [B, C, h, w]
};

// "float32" or torch.float32, which Python shows as "torch.float32".
torch::Dtype dtype_of(const pybind11::handle& object);

}  // namespace sdtune::python
