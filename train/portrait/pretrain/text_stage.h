// Teaching the text encoder to read, before the UNet listens to it: which attributes a caption names, told by one
// linear layer from the states at and behind its end. CLIP's encoder comes to Stable Diffusion just so, trained already
// (Radford et al., "Learning transferable visual models from natural language supervision", 2021); from the denoising
// error alone a small one takes many times as long to tell one colour from another.
#pragma once

#include <torch/types.h>

#include "model/nn/linear.h"
#include "model/pipeline/bundle.h"
#include "train/portrait/pretrain/image_pool.h"
#include "train/portrait/pretrain/pool_order.h"
#include "train/portrait/pretrain/stage.h"

namespace sdtune::train::pretrain {

class TextStage final : public Stage {
 public:
  // `bundle` is on the device of training. No image is looked at: the pool knows what its images show.
  TextStage(model::ModelBundle& bundle, const ImagePool& pool, std::uint64_t seed, std::int64_t batch_size);

  std::string name() const override { return "text"; }
  std::vector<NamedParameter> parameters() const override;
  std::int64_t batch_size() const override { return batch_size_; }
  torch::Tensor loss(std::uint64_t step) override;

  // What the linear layer makes of these texts: [B, classifier::column_count()], the heads side by side.
  torch::Tensor logits(const std::vector<std::string>& texts);

 private:
  model::ModelBundle& bundle_;
  const ImagePool& pool_;
  std::uint64_t seed_;
  std::int64_t batch_size_;
  PoolOrder order_;
  model::Linear attribute_head_;  // discarded when the stage is over
};

}  // namespace sdtune::train::pretrain
