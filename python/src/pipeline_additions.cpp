// What is added to a pipeline's model: LoRAs, another VAE, textual inversions.
#include "model/lora/lora_file.h"
#include "model/pipeline/textual_inversion.h"
#include "model/single_file/vae_file.h"
#include "python/src/compute_scope.h"
#include "python/src/pipeline.h"

namespace sdtune::python {

void Pipeline::load_lora(const std::filesystem::path& path, double scale) {
  const UseScope use(use_);
  const ComputeScope scope;
  const std::filesystem::path file = model::find_lora_file(path);
  model::attach_lora(bundle_, file.string(), model::read_lora(file, bundle_), scale);
}

void Pipeline::unload_loras() {
  const UseScope use(use_);
  const ComputeScope scope;
  fused_.clear();  // what was fused stays in the weights, as in diffusers
  for (const model::LoraLayer& entry : model::lora_layers(bundle_)) entry.layer->branches.clear();
}

void Pipeline::fuse_loras() {
  const UseScope use(use_);
  const ComputeScope scope;
  for (model::FusedBranch& branch : model::fuse_loras(bundle_)) fused_.push_back(std::move(branch));
}

void Pipeline::unfuse_loras() {
  const UseScope use(use_);
  const ComputeScope scope;
  model::unfuse_loras(fused_);
  fused_.clear();
}

void Pipeline::load_vae(const std::filesystem::path& path) {
  const UseScope use(use_);
  model::ModelBundle changed = bundle_;  // shares the modules; pipe.vae is read without UseScope
  {
    const ComputeScope scope;
    model::replace_vae(changed, path);
  }
  bundle_ = std::move(changed);
}

void Pipeline::set_vae_tiling(bool tiling) {
  const UseScope use(use_);
  bundle_.vae->set_tiling(tiling);
}

void Pipeline::set_vae_slicing(bool slicing) {
  const UseScope use(use_);
  bundle_.vae->set_slicing(slicing);
}

void Pipeline::load_textual_inversion(const std::filesystem::path& path, const std::string& token) {
  const UseScope use(use_);
  const ComputeScope scope;
  model::add_textual_inversion(bundle_, model::read_textual_inversion(path, bundle_, token));
}

void Pipeline::unload_textual_inversions() {
  const UseScope use(use_);
  const ComputeScope scope;
  model::remove_textual_inversions(bundle_);
}

}  // namespace sdtune::python
