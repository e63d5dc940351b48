// What training and generation with a model costs, watched on its modules: sizes come from its configs, so a model of
// any size can be traced without its weights.
#pragma once

#include <memory>
#include <vector>

#include "model/pipeline/bundle.h"
#include "train/config/train_config.h"
#include "train/objective/diffusion_loss.h"
#include "train/parameters/lora_parameters.h"
#include "train/parameters/trainable_parameters.h"
#include "train/plan/pass_scaling.h"

namespace sdtune::train {

class ModelTrace {
 public:
  // `bundle` from model::empty_bundle. Makes it ready to be trained as `config` says: the compute dtype, LoRA's
  // branches, what requires gradients. `of_this_cpu`: also what this machine's CPU takes for itself, where that is
  // quickly computed.
  ModelTrace(const TrainConfig& config, model::ModelBundle bundle, bool of_this_cpu = true);

  ModelTrace(const ModelTrace&) = delete;
  ModelTrace& operator=(const ModelTrace&) = delete;

  const std::vector<ModuleParameter>& trained() const { return trained_; }
  const model::ModelBundle& bundle() const { return bundle_; }

  // One forward and backward at that shape, without a record; what becomes of the gradients is the caller's.
  // `mark` is told which part comes next.
  void run_training(const PassShape& shape, bool recomputed, const MarkPiece& mark);

  // Forward and backward of these latents; gradients of weights are freed as they come, as they are not among
  // the activations. `recomputed`: activations are computed again in backward (gradient_checkpointing).
  PassCost training(const PassShape& shape, bool recomputed) {
    return (recomputed ? recomputed_ : training_).at(shape);
  }
  // One call of the UNet, without gradients.
  PassCost denoising(const PassShape& shape) { return denoising_.at(shape); }
  // The VAE to and from latents of that shape; tile by tile where the options say so.
  PassCost encoding(const PassShape& shape) { return in_tiles(encoding_, shape); }
  PassCost decoding(const PassShape& shape) { return in_tiles(decoding_, shape); }

 private:
  PassCost in_tiles(ScaledPass& pass, const PassShape& shape) const;
  void recompute(bool on);
  PassCost trace_training(const PassShape& shape, bool recomputed);
  PassCost trace_denoising(const PassShape& shape);
  PassCost trace_encoding(const PassShape& shape);
  PassCost trace_decoding(const PassShape& shape);
  DiffusionBatch batch_of(const PassShape& shape, const MarkPiece& mark);

  TrainConfig config_;
  model::ModelBundle bundle_;
  torch::Dtype dtype_;
  std::shared_ptr<DropoutSamples> dropout_ = std::make_shared<DropoutSamples>();
  std::vector<ModuleParameter> trained_;
  std::unique_ptr<DiffusionLoss> loss_;
  ScaledPass training_, recomputed_, denoising_, encoding_, decoding_;
};

}  // namespace sdtune::train
