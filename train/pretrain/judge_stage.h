// The judge's training.
#pragma once

#include "train/judge/augmentation.h"
#include "train/judge/judge_network.h"
#include "train/pretrain/picture_pool.h"
#include "train/pretrain/pool_order.h"
#include "train/pretrain/stage.h"

namespace sdtune::train::pretrain {

// A step sees all pictures of kPeople people: the identity loss needs several pictures of one and many others.
class JudgeStage : public Stage {
 public:
  static constexpr std::int64_t kPeople = 32;

  // The pool's pictures must be of the judge's size (std::invalid_argument); it must outlive this. `reconstruct` may be
  // empty; it is called without gradients on pictures on the network's device.
  JudgeStage(PicturePool& pool, judge::JudgeNetwork network, std::uint64_t seed, judge::Reconstruct reconstruct);

  std::string name() const override { return "judge"; }
  std::vector<NamedParameter> parameters() const override;
  std::int64_t batch_size() const override { return kPeople * pool_.views(); }
  torch::Tensor loss(std::uint64_t step) override;

 private:
  std::vector<std::int64_t> pictures_of(std::uint64_t step);

  PicturePool& pool_;
  judge::JudgeNetwork network_;
  std::uint64_t seed_;
  judge::Reconstruct reconstruct_;
  PoolOrder people_;
};

}  // namespace sdtune::train::pretrain
