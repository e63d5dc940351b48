#include "train/portrait/pretrain/classifier_stage.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "train/portrait/classifier/classifier_loss.h"
#include "train/portrait/classifier/landmark_erasure.h"

namespace sdtune::train::pretrain {
namespace {

// Apart from the random draws of other stages with the same seed.
constexpr std::uint64_t kClassifierSeed = std::uint64_t{0x6a75646765} << 16;  // "classifier"
constexpr double kErasedShare = 0.15;

}  // namespace

ClassifierStage::ClassifierStage(std::string name, ImagePool& pool, classifier::ClassifierNetwork network,
                                 std::uint64_t seed, classifier::Reconstruct reconstruct, std::int64_t images)
    : name_(std::move(name)),
      pool_(pool),
      network_(std::move(network)),
      seed_(seed ^ kClassifierSeed),
      reconstruct_(std::move(reconstruct)),
      people_(seed_, (images > 0 ? std::min(images, pool.count()) : pool.count()) / pool.views(),
              ImagePool::kShard / pool.views()) {
  if (pool.size() != network_->design().size)
    throw std::invalid_argument("the pool's images are not of the portrait classifier's size");
  if (pool.count() < pool.views())
    throw std::invalid_argument("the portrait classifier needs all views of at least one person");
}

std::vector<NamedParameter> ClassifierStage::parameters() const {
  std::vector<NamedParameter> parameters;
  for (const auto& item : network_->named_parameters()) parameters.push_back({item.key(), item.value()});
  return parameters;
}

std::vector<std::int64_t> ClassifierStage::images_of(std::uint64_t step) {
  std::vector<std::int64_t> images;
  for (const std::int64_t person : people_.images(step * kPeople, kPeople)) {
    for (std::int64_t view = 0; view < pool_.views(); ++view) images.push_back(person * pool_.views() + view);
  }
  return images;
}

torch::Tensor ClassifierStage::loss(std::uint64_t step) {
  const std::vector<std::int64_t> indices = images_of(step);
  std::vector<portrait::Portrait> portraits;
  for (const std::int64_t index : indices) portraits.push_back(pool_.portrait(index));
  const torch::Tensor weight = network_->parameters().front();
  const torch::Device device = weight.device();
  classifier::ErasedImages shown{pool_.images(indices), classifier::labels_of(portraits)};
  if (shown.labels.landmarks.numel() > 0) {
    shown = classifier::erase_landmarks(shown.images, shown.labels, kErasedShare, seed_, step);
  }
  const torch::Tensor images = classifier::augment(shown.images.to(device), seed_, step, reconstruct_);
  return classifier::classifier_loss(network_(images.to(weight.scalar_type())), shown.labels.to(device));
}

}  // namespace sdtune::train::pretrain
