#include "train/pretrain/judge_stage.h"

#include <stdexcept>
#include <utility>

#include "train/judge/judge_loss.h"

namespace sdtune::train::pretrain {
namespace {

// Apart from the draws that other stages make of the same seed.
constexpr std::uint64_t kJudgeSeed = std::uint64_t{0x6a75646765} << 16;  // "judge"

}  // namespace

JudgeStage::JudgeStage(PicturePool& pool, judge::JudgeNetwork network, std::uint64_t seed,
                       judge::Reconstruct reconstruct)
    : pool_(pool),
      network_(std::move(network)),
      seed_(seed ^ kJudgeSeed),
      reconstruct_(std::move(reconstruct)),
      people_(seed_, pool.count() / pool.views(), PicturePool::kShard / pool.views()) {
  if (pool.size() != judge::kJudgeSize) throw std::invalid_argument("the judge reads pictures of 64 px");
  if (pool.count() < pool.views()) throw std::invalid_argument("the judge needs all views of at least one person");
}

std::vector<NamedParameter> JudgeStage::parameters() const {
  std::vector<NamedParameter> parameters;
  for (const auto& item : network_->named_parameters()) parameters.push_back({item.key(), item.value()});
  return parameters;
}

std::vector<std::int64_t> JudgeStage::pictures_of(std::uint64_t step) {
  std::vector<std::int64_t> pictures;
  for (const std::int64_t person : people_.pictures(step * kPeople, kPeople)) {
    for (std::int64_t view = 0; view < pool_.views(); ++view) pictures.push_back(person * pool_.views() + view);
  }
  return pictures;
}

torch::Tensor JudgeStage::loss(std::uint64_t step) {
  const std::vector<std::int64_t> indices = pictures_of(step);
  std::vector<portrait::Portrait> portraits;
  for (const std::int64_t index : indices) portraits.push_back(pool_.portrait(index));
  const torch::Device device = network_->parameters().front().device();
  const torch::Tensor pictures = judge::augment(pool_.pictures(indices).to(device), seed_, step, reconstruct_);
  return judge::judge_loss(network_(pictures), judge::labels_of(portraits).to(device));
}

}  // namespace sdtune::train::pretrain
