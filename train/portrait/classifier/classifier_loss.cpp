#include "train/portrait/classifier/classifier_loss.h"

namespace sdtune::train::classifier {
namespace {

constexpr double kHuberDelta = 0.25;
constexpr double kTemperature = 0.1;  // of the identity loss
// Heads count as they are. Numbers weigh what makes a mean error of a tenth of their range matter like a wrong class in
// ten; identity is one term against seventeen, and the one that a false verdict hurts most.
constexpr double kNumberWeight = 2.0;
constexpr double kIdentityWeight = 4.0;
constexpr double kLandmarkDelta = 0.03;  // of the Huber loss: two pixels of 128
constexpr double kLandmarkWeight = 4.0;

}  // namespace

torch::Tensor class_loss(const torch::Tensor& logits, const torch::Tensor& classes) {
  torch::Tensor sum = torch::zeros({}, logits.options());
  for (std::size_t i = 0; i < kHeadCount; ++i) {
    const auto head = static_cast<Head>(i);
    const auto width = static_cast<std::int64_t>(head_info(head).classes.size());
    const torch::Tensor truth = classes.select(1, static_cast<std::int64_t>(i));
    const torch::Tensor log_p = torch::log_softmax(logits.narrow(1, first_column(head), width), 1);
    const torch::Tensor shown = truth.ne(kHidden);
    const torch::Tensor picked = log_p.gather(1, truth.clamp_min(0).unsqueeze(1)).squeeze(1);
    sum = sum - (picked * shown).sum() / shown.sum().clamp_min(1);
  }
  return sum;
}

torch::Tensor number_loss(const torch::Tensor& numbers, const torch::Tensor& truth) {
  const torch::Tensor shown = truth.isnan().logical_not();
  const torch::Tensor known = torch::where(shown, truth, numbers.detach());
  const torch::Tensor each = torch::huber_loss(numbers, known, at::Reduction::None, kHuberDelta) / kHuberDelta;
  return ((each * shown).sum(0) / shown.sum(0).clamp_min(1)).sum();
}

torch::Tensor identity_loss(const torch::Tensor& embedding, const torch::Tensor& people) {
  const torch::Tensor self = torch::eye(embedding.size(0), torch::TensorOptions(torch::kBool).device(people.device()));
  const torch::Tensor likeness = torch::matmul(embedding, embedding.t()) / kTemperature;
  const torch::Tensor log_p = torch::log_softmax(likeness.masked_fill(self, -1e9), 1);
  const torch::Tensor same = people.unsqueeze(0).eq(people.unsqueeze(1)).logical_and(self.logical_not());
  const torch::Tensor partners = same.sum(1);
  const torch::Tensor mean_of_partners = (log_p * same).sum(1) / partners.clamp_min(1);
  return -mean_of_partners.sum() / partners.gt(0).sum().clamp_min(1);
}

torch::Tensor landmark_loss(const ClassifierOutput& output, const Labels& labels) {
  if (output.landmarks.numel() == 0) return torch::zeros({}, output.logits.options());
  const torch::Tensor places = output.landmarks.to(torch::kFloat32),
                      logits = output.landmark_logits.to(torch::kFloat32);
  const torch::Tensor distance =
      torch::huber_loss(places, labels.landmarks, at::Reduction::Mean, kLandmarkDelta) * (2.0 / kLandmarkDelta);
  return distance + torch::binary_cross_entropy_with_logits(logits, labels.landmarks_seen);
}

torch::Tensor classifier_loss(const ClassifierOutput& output, const Labels& labels) {
  const torch::Tensor numbers = output.numbers.to(torch::kFloat32),
                      wanted = labels.numbers.narrow(1, 0, numbers.size(1));
  return class_loss(output.logits.to(torch::kFloat32), labels.classes) + kNumberWeight * number_loss(numbers, wanted) +
         kIdentityWeight * identity_loss(output.embedding.to(torch::kFloat32), labels.people) +
         kLandmarkWeight * landmark_loss(output, labels);
}

}  // namespace sdtune::train::classifier
