#include "train/judge/judge.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "train/judge/judge_loss.h"
#include "train/judge/judge_measurement.h"
#include "train/judge/portrait_pictures.h"
#include "train/portrait/portrait_set.h"

namespace sdtune::train::judge {
namespace {

std::vector<portrait::Portrait> portraits_of(std::uint64_t people, std::uint64_t views) {
  std::vector<portrait::Portrait> portraits;
  for (std::uint64_t i = 0; i < people * views; ++i) {
    portraits.push_back(
        portrait::draw_portrait(portrait::picture_seeds(portrait::PortraitSet::kTraining, i / views, i % views)));
  }
  return portraits;
}

TEST(JudgeNetwork, IsSmall) {
  std::int64_t weights = 0;
  for (const torch::Tensor& weight : JudgeNetwork()->parameters()) weights += weight.numel();
  EXPECT_LE(weights, 3'000'000);
}

TEST(Judge, ReadsDistributionsAndEmbeddingsOfLengthOne) {
  torch::manual_seed(1);
  Judge judge(JudgeNetwork(), {});
  const Reading reading = judge.read(torch::rand({5, 3, 64, 64}) * 2 - 1);
  EXPECT_EQ(reading.probabilities.sizes(), (torch::IntArrayRef{5, column_count()}));
  EXPECT_EQ(reading.features.sizes(), (torch::IntArrayRef{5, kFeatures}));
  EXPECT_NEAR(reading.probabilities.sum().item<double>(), 5.0 * kHeadCount, 1e-3);
  EXPECT_LT((reading.embedding.norm(2, {1}) - 1).abs().max().item<double>(), 1e-5);
  EXPECT_LT(reading.classes(Head::kPlace).max().item<std::int64_t>(), 6);
  EXPECT_THROW(judge.read(torch::zeros({1, 3, 32, 32})), c10::Error);
}

// What a few steps on few people can show: it learns those, and likeness of a person across pictures. Untrained, the
// same bars fail.
TEST(Judge, LearnsFromItsLoss) {
  const std::vector<portrait::Portrait> portraits = portraits_of(6, 3);
  const torch::Tensor pictures = portrait_pictures(portraits, kJudgeSize, 2);
  const Labels labels = labels_of(portraits);
  torch::manual_seed(2);
  JudgeNetwork network;
  const auto place_accuracy = [&] {
    Judge judge(network, {});
    return judge.read(pictures)
        .classes(Head::kPlace)
        .eq(labels.classes.select(1, static_cast<int>(Head::kPlace)))
        .to(torch::kFloat32)
        .mean()
        .item<double>();
  };
  const double first = judge_loss(network(pictures), labels).item<double>();
  EXPECT_LT(place_accuracy(), 0.7);
  std::vector<torch::Tensor> momentum;
  for (const torch::Tensor& weight : network->parameters()) momentum.push_back(torch::zeros_like(weight));
  for (int step = 0; step < 25; ++step) {
    network->zero_grad();
    judge_loss(network(pictures), labels).backward();
    const torch::NoGradGuard no_grad;
    for (std::size_t i = 0; i < momentum.size(); ++i) {
      torch::Tensor weight = network->parameters()[i];
      momentum[i].mul_(0.9).add_(weight.grad().sign(), 0.1);  // sign descent: no rate to tune by layer
      weight.sub_(momentum[i], 0.002);
    }
  }
  EXPECT_LT(judge_loss(network(pictures), labels).item<double>(), 0.5 * first);
  EXPECT_GT(place_accuracy(), 0.9);
}

TEST(JudgeMeasurement, OfAnUntrainedJudgeIsNearChance) {
  torch::manual_seed(3);
  Judge judge(JudgeNetwork(), {});
  MeasurementOptions options;
  options.people = 10;
  options.views = 4;
  options.references = 2;
  std::int64_t sent = 0;
  options.reconstruct = [&](const torch::Tensor& x) {
    sent += x.size(0);
    return x;
  };
  const JudgeFigures figures = measure_judge(judge, options);
  EXPECT_EQ(sent, 40);
  EXPECT_EQ(figures.accuracy.size(), kHeadCount);
  EXPECT_LT(figures.accuracy.at("clothes_color"), 0.5);
  EXPECT_GT(figures.mean_error.at("face_width"), 0.2);
  EXPECT_LT(figures.by_pair.auc, 0.9);
  EXPECT_LE(figures.by_references.accepted, 0.6);
}

}  // namespace
}  // namespace sdtune::train::judge
