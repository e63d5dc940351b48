// The LoRAs of a pipeline.
#include "model/lora/lora_file.h"
#include "python/src/compute_scope.h"
#include "python/src/pipeline.h"

namespace sdtune::python {

void Pipeline::load_lora(const std::filesystem::path& path, double scale) {
  const ComputeScope scope;
  const std::lock_guard busy(busy_);
  const std::filesystem::path file = model::find_lora_file(path);
  model::attach_lora(bundle_, file.string(), model::read_lora(file, bundle_), scale);
}

void Pipeline::unload_loras() {
  const ComputeScope scope;
  const std::lock_guard busy(busy_);
  model::unfuse_loras(fused_);
  fused_.clear();
  for (const model::LoraLayer& entry : model::lora_layers(bundle_)) entry.layer->branches.clear();
}

void Pipeline::fuse_loras() {
  const ComputeScope scope;
  const std::lock_guard busy(busy_);
  for (model::FusedBranch& branch : model::fuse_loras(bundle_)) fused_.push_back(std::move(branch));
}

void Pipeline::unfuse_loras() {
  const ComputeScope scope;
  const std::lock_guard busy(busy_);
  model::unfuse_loras(fused_);
  fused_.clear();
}

}  // namespace sdtune::python
