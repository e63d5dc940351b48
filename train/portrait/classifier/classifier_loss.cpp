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
constexpr double kMarkPlaceWeight = 0.5;  // of a thousand places: ten times a class's cross entropy at first

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

torch::Tensor mark_place_loss(const ClassifierOutput& output, const Labels& labels) {
  torch::Tensor sum = torch::zeros({}, output.logits.options().dtype(torch::kFloat32));
  if (!output.marks.defined()) return sum;
  const std::int64_t batch = output.marks.size(0), height = output.marks.size(2), width = output.marks.size(3);
  const torch::Tensor x = ((labels.mark_places.select(3, 0) + 1.0) * (0.5 * static_cast<double>(width))).floor();
  const torch::Tensor y = ((labels.mark_places.select(3, 1) + 1.0) * (0.5 * static_cast<double>(height))).floor();
  const torch::Tensor inside = x.ge(0).logical_and(x.lt(width)).logical_and(y.ge(0)).logical_and(y.lt(height));
  const torch::Tensor place = torch::where(inside, y * width + x, torch::zeros_like(x)).to(torch::kInt64);
  for (std::size_t i = 0; i < portrait::kMarkCount; ++i) {
    const Head head = head_of(static_cast<portrait::Mark>(i));
    const torch::Tensor shown = labels.classes.select(1, static_cast<std::int64_t>(head));
    const torch::Tensor column = shown.clamp_min(0) + (first_column(head) - first_column(Head::kStreak));
    const torch::Tensor map = output.marks.index({torch::arange(batch, column.options()), column});
    const torch::Tensor log_p = torch::log_softmax(map.flatten(1).to(torch::kFloat32), 1);
    const auto mark = static_cast<std::int64_t>(i);
    const torch::Tensor counts = inside.select(1, mark).logical_and(shown.gt(0).unsqueeze(1));
    sum = sum - (log_p.gather(1, place.select(1, mark)) * counts).sum() / counts.sum().clamp_min(1);
  }
  return sum;
}

torch::Tensor classifier_loss(const ClassifierOutput& output, const Labels& labels) {
  const torch::Tensor numbers = output.numbers.to(torch::kFloat32),
                      wanted = labels.numbers.narrow(1, 0, numbers.size(1));
  return class_loss(output.logits.to(torch::kFloat32), labels.classes) + kNumberWeight * number_loss(numbers, wanted) +
         kIdentityWeight * identity_loss(output.embedding.to(torch::kFloat32), labels.people) +
         kLandmarkWeight * landmark_loss(output, labels) + kMarkPlaceWeight * mark_place_loss(output, labels);
}

}  // namespace sdtune::train::classifier
