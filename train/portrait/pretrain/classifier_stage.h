// The classifier's training.
#pragma once

#include "train/portrait/classifier/augmentation.h"
#include "train/portrait/classifier/classifier_network.h"
#include "train/portrait/pretrain/image_pool.h"
#include "train/portrait/pretrain/pool_order.h"
#include "train/portrait/pretrain/stage.h"

namespace sdtune::train::pretrain {

// A step sees all images of kPeople people: the identity loss needs several images of one and many others.
class ClassifierStage : public Stage {
 public:
  static constexpr std::int64_t kPeople = 32;

  // The pool's images must be of the classifier's size (std::invalid_argument); it must outlive this. `reconstruct` may
  // be empty; it is called without gradients on images on the network's device. `images`: the first so many of the pool
  // are trained on; 0: all.
  ClassifierStage(std::string name, ImagePool& pool, classifier::ClassifierNetwork network, std::uint64_t seed,
                  classifier::Reconstruct reconstruct, std::int64_t images = 0);

  std::string name() const override { return name_; }
  std::vector<NamedParameter> parameters() const override;
  std::int64_t batch_size() const override { return kPeople * pool_.views(); }
  torch::Tensor loss(std::uint64_t step) override;

 private:
  std::vector<std::int64_t> images_of(std::uint64_t step);

  std::string name_;
  ImagePool& pool_;
  classifier::ClassifierNetwork network_;
  std::uint64_t seed_;
  classifier::Reconstruct reconstruct_;
  PoolOrder people_;
};

}  // namespace sdtune::train::pretrain
