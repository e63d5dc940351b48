#include "train/portrait/classifier/portrait_classifier.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "model/base/error.h"
#include "train/portrait/classifier/classifier_loss.h"
#include "train/portrait/classifier/classifier_measurement.h"
#include "train/portrait/classifier/portrait_images.h"
#include "train/portrait/renderer/portrait_set.h"

namespace sdtune::train::classifier {
namespace {

std::vector<portrait::Portrait> portraits_of(std::uint64_t people, std::uint64_t views) {
  std::vector<portrait::Portrait> portraits;
  for (std::uint64_t i = 0; i < people * views; ++i) {
    portraits.push_back(
        portrait::draw_portrait(portrait::image_seeds(portrait::PortraitSet::kTraining, i / views, i % views)));
  }
  return portraits;
}

TEST(ClassifierNetwork, IsSmall) {
  std::int64_t weights = 0;
  for (const torch::Tensor& weight : ClassifierNetwork()->parameters()) weights += weight.numel();
  EXPECT_LE(weights, 3'000'000);
}

TEST(PortraitClassifier, ReadsDistributionsAndEmbeddingsOfLengthOne) {
  torch::manual_seed(1);
  PortraitClassifier classifier(ClassifierNetwork(), {});
  const Reading reading = classifier.read(torch::rand({5, 3, 64, 64}) * 2 - 1);
  EXPECT_EQ(reading.probabilities.sizes(), (torch::IntArrayRef{5, column_count()}));
  EXPECT_EQ(reading.features.sizes(), (torch::IntArrayRef{5, kFeatures}));
  EXPECT_NEAR(reading.probabilities.sum().item<double>(), 5.0 * kHeadCount, 1e-3);
  EXPECT_LT((reading.embedding.norm(2, {1}) - 1).abs().max().item<double>(), 1e-5);
  EXPECT_LT(reading.classes(Head::kPlace).max().item<std::int64_t>(), 6);
}

// Of another size images are resized, so a classifier of 128 px reads what a base of 64 px generates.
TEST(PortraitClassifier, ReadsImagesOfAnySize) {
  torch::manual_seed(1);
  PortraitClassifier classifier(ClassifierNetwork(), {});
  const torch::Tensor small = torch::rand({2, 3, 16, 16}) * 2 - 1;
  const torch::Tensor large = small.repeat_interleave(16, 2).repeat_interleave(16, 3);
  const torch::Tensor likeness =
      (classifier.read(large).embedding * classifier.read(torch::avg_pool2d(large, 4)).embedding).sum(1);
  EXPECT_GT(likeness.min().item<double>(), 0.98);
  const torch::Tensor other =
      (classifier.read(large).embedding * classifier.read(torch::zeros({2, 3, 64, 64})).embedding).sum(1);
  EXPECT_LT(other.max().item<double>(), 0.98);
  EXPECT_THROW(ClassifierDesign::of_size(96, "here"), WeightError);
}

// What a few steps on few people can show: it learns those, and likeness of a person across images. Untrained, the
// same bars fail.
TEST(PortraitClassifier, LearnsFromItsLoss) {
  const std::vector<portrait::Portrait> portraits = portraits_of(6, 3);
  const torch::Tensor images = portrait_images(portraits, 64, 2);
  const Labels labels = labels_of(portraits);
  torch::manual_seed(2);
  ClassifierNetwork network;
  const auto place_accuracy = [&] {
    PortraitClassifier classifier(network, {});
    return classifier.read(images)
        .classes(Head::kPlace)
        .eq(labels.classes.select(1, static_cast<int>(Head::kPlace)))
        .to(torch::kFloat32)
        .mean()
        .item<double>();
  };
  const double first = classifier_loss(network(images), labels).item<double>();
  EXPECT_LT(place_accuracy(), 0.7);
  std::vector<torch::Tensor> momentum;
  for (const torch::Tensor& weight : network->parameters()) momentum.push_back(torch::zeros_like(weight));
  for (int step = 0; step < 25; ++step) {
    network->zero_grad();
    classifier_loss(network(images), labels).backward();
    const torch::NoGradGuard no_grad;
    for (std::size_t i = 0; i < momentum.size(); ++i) {
      torch::Tensor weight = network->parameters()[i];
      momentum[i].mul_(0.9).add_(weight.grad().sign(), 0.1);  // sign descent: no rate to tune by layer
      weight.sub_(momentum[i], 0.002);
    }
  }
  EXPECT_LT(classifier_loss(network(images), labels).item<double>(), 0.5 * first);
  EXPECT_GT(place_accuracy(), 0.9);
}

TEST(ClassifierMeasurement, OfAnUntrainedClassifierIsNearChance) {
  torch::manual_seed(3);
  PortraitClassifier classifier(ClassifierNetwork(), {});
  MeasurementOptions options;
  options.people = 10;
  options.views = 4;
  options.references = 2;
  std::int64_t sent = 0;
  options.reconstruct = [&](const torch::Tensor& x) {
    sent += x.size(0);
    return x;
  };
  const ClassifierFigures figures = measure_classifier(classifier, options);
  EXPECT_EQ(sent, 40);
  EXPECT_EQ(figures.accuracy.size(), kHeadCount);
  EXPECT_LT(figures.accuracy.at("clothes_color"), 0.5);
  EXPECT_GT(figures.mean_error.at("face_width"), 0.2);
  EXPECT_LT(figures.by_pair.auc, 0.9);
  EXPECT_LE(figures.by_references.accepted, 0.6);
}

}  // namespace
}  // namespace sdtune::train::classifier
