#include "train/portrait/classifier/portrait_classifier.h"

#include <c10/core/GradMode.h>

#include <utility>
#include <vector>

#include "train/portrait/classifier/classifier_file.h"

namespace sdtune::train::classifier {
namespace {

constexpr std::int64_t kBatch = 128;

torch::Tensor head_columns(const torch::Tensor& rows, Head head) {
  return rows.narrow(1, first_column(head), static_cast<std::int64_t>(head_info(head).classes.size()));
}

torch::Tensor distributions(const torch::Tensor& logits) {
  std::vector<torch::Tensor> heads;
  for (std::size_t head = 0; head < kHeadCount; ++head) {
    heads.push_back(torch::softmax(head_columns(logits, static_cast<Head>(head)), 1));
  }
  return torch::cat(heads, 1);
}

}  // namespace

torch::Tensor resized_images(const torch::Tensor& images, std::int64_t side) {
  if (images.size(2) == side && images.size(3) == side) return images;
  return at::_upsample_bicubic2d_aa(images, {side, side}, /*align_corners=*/false).clamp(-1.0, 1.0);
}

torch::Tensor Reading::classes(Head head) const {
  return head_columns(probabilities, head).argmax(1);
}

PortraitClassifier::PortraitClassifier(ClassifierNetwork network, ClassifierFigures figures)
    : network_(std::move(network)), figures_(std::move(figures)) {}

PortraitClassifier PortraitClassifier::load(const std::filesystem::path& folder, torch::Device device) {
  StoredClassifier stored = load_classifier(folder);
  stored.network->to(device);
  return PortraitClassifier(stored.network, std::move(stored.figures));
}

Reading PortraitClassifier::read(const torch::Tensor& images) {
  const c10::AutoGradMode no_gradients(false);
  const torch::Device device = network_->parameters().front().device();
  std::vector<torch::Tensor> probabilities, numbers, features, embeddings, landmarks, seen;
  for (const torch::Tensor& some : images.split(kBatch)) {
    const ClassifierOutput output = network_(resized_images(some.to(device, torch::kFloat32), design().size));
    probabilities.push_back(distributions(output.logits).cpu());
    numbers.push_back(output.numbers.cpu());
    features.push_back(output.features.cpu());
    embeddings.push_back(output.embedding.cpu());
    landmarks.push_back(output.landmarks.cpu());
    seen.push_back(torch::sigmoid(output.landmark_logits).cpu());
  }
  return {torch::cat(probabilities), torch::cat(numbers),   torch::cat(features),
          torch::cat(embeddings),    torch::cat(landmarks), torch::cat(seen)};
}

}  // namespace sdtune::train::classifier
