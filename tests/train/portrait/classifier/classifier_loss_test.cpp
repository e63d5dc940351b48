#include "train/portrait/classifier/classifier_loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace sdtune::train::classifier {
namespace {

torch::Tensor random_normal(torch::IntArrayRef shape) {
  torch::manual_seed(5);
  return torch::randn(shape);
}

torch::Tensor hidden_everywhere(std::int64_t count) {
  return torch::full({count, static_cast<std::int64_t>(kHeadCount)}, kHidden, torch::kInt64);
}

TEST(ClassifierLoss, ClassesAreCrossEntropiesOfWhatIsVisible) {
  const torch::Tensor logits = random_normal({6, column_count()});
  torch::Tensor classes = hidden_everywhere(6);
  classes.select(1, static_cast<int>(Head::kPlace)).copy_(torch::tensor({0, 5, -1, 2, -1, 1}, torch::kInt64));
  classes.select(1, static_cast<int>(Head::kScar)).copy_(torch::tensor({1, -1, -1, -1, 0, -1}, torch::kInt64));
  const auto expected = [&](Head head, std::int64_t width) {
    return torch::cross_entropy_loss(logits.narrow(1, first_column(head), width),
                                     classes.select(1, static_cast<int>(head)), {}, at::Reduction::Mean, kHidden)
        .item<double>();
  };
  const double loss = class_loss(logits, classes).item<double>();
  EXPECT_NEAR(loss, expected(Head::kPlace, 6) + expected(Head::kScar, 2), 1e-5);
  EXPECT_GT(std::abs(loss - expected(Head::kPlace, 6)), 1e-3);  // one head left out would show
  EXPECT_EQ(class_loss(logits, hidden_everywhere(6)).item<double>(), 0.0);
}

TEST(ClassifierLoss, HiddenClassesAndNumbersPushNothing) {
  torch::Tensor logits = random_normal({2, column_count()}).requires_grad_();
  torch::Tensor numbers = random_normal({2, static_cast<std::int64_t>(kNumberNames.size())}).requires_grad_();
  torch::Tensor classes = hidden_everywhere(2);
  classes[0][static_cast<int>(Head::kHat)] = 3;
  torch::Tensor truth = torch::full_like(numbers, NAN).detach();
  truth[1][2] = 0.5;
  (class_loss(logits, classes) + number_loss(numbers, truth)).backward();
  EXPECT_GT(logits.grad()[0].narrow(0, first_column(Head::kHat), 5).abs().min().item<double>(), 0.0);
  EXPECT_EQ(logits.grad()[1].abs().max().item<double>(), 0.0);
  EXPECT_NE(numbers.grad()[1][2].item<double>(), 0.0);
  EXPECT_EQ(numbers.grad().ne(0).sum().item<std::int64_t>(), 1);
  EXPECT_TRUE(numbers.grad().isfinite().all().item<bool>());
}

// The formula in plain loops.
double slow_identity_loss(const torch::Tensor& z, const std::vector<int>& people, double temperature) {
  const auto count = static_cast<int>(people.size());
  const auto likeness = [&](int a, int b) { return (z[a] * z[b]).sum().item<double>() / temperature; };
  double sum = 0;
  int with_partner = 0;
  for (int i = 0; i < count; ++i) {
    double others = 0, positives = 0;
    int partners = 0;
    for (int j = 0; j < count; ++j) {
      if (j != i) others += std::exp(likeness(i, j));
    }
    for (int j = 0; j < count; ++j) {
      if (j == i || people[j] != people[i]) continue;
      positives += likeness(i, j) - std::log(others);
      ++partners;
    }
    if (partners == 0) continue;
    sum -= positives / partners;
    ++with_partner;
  }
  return sum / with_partner;
}

TEST(ClassifierLoss, IdentityIsTheSupervisedContrastiveLoss) {
  torch::Tensor z = random_normal({7, 8});
  z = z / z.norm(2, {1}, true);
  const std::vector<int> people = {0, 1, 0, 2, 1, 0, 3};
  const double loss = identity_loss(z, torch::tensor(people, torch::kInt64)).item<double>();
  EXPECT_NEAR(loss, slow_identity_loss(z, people, 0.1), 1e-4);
  EXPECT_GT(std::abs(loss - slow_identity_loss(z, people, 0.2)), 1e-2);
  EXPECT_GT(std::abs(loss - slow_identity_loss(z, {0, 1, 0, 2, 1, 2, 3}, 0.1)), 1e-2);
}

TEST(ClassifierLoss, IdentityIsLowWhereOnePersonIsNearAndOthersFar) {
  const torch::Tensor axes = torch::eye(4);
  const torch::Tensor together = axes.repeat_interleave(2, 0), crossed = axes.repeat({2, 1});
  const torch::Tensor people = torch::arange(4).repeat_interleave(2);
  EXPECT_LT(identity_loss(together, people).item<double>(), 0.01);
  EXPECT_GT(identity_loss(crossed, people).item<double>(), 5.0);
  EXPECT_EQ(identity_loss(axes, torch::arange(4)).item<double>(), 0.0);
}

// In pixels of 128 off, 2 and 4: within the Huber delta squared, beyond it linear.
TEST(ClassifierLoss, LandmarksArePlacesAndWhetherTheyAreSeen) {
  ClassifierOutput output;
  Labels labels;
  output.logits = torch::zeros({1, 3});
  labels.landmarks = torch::zeros({1, 2, 2});
  labels.landmarks_seen = torch::tensor({1.0f, 0.0f}).view({1, 2});
  output.landmarks = torch::zeros({1, 2, 2});
  output.landmark_logits = torch::tensor({30.0f, -30.0f}).view({1, 2});
  EXPECT_NEAR(landmark_loss(output, labels).item<double>(), 0, 1e-6);
  output.landmarks[0][0][1] = 0.06f;
  EXPECT_NEAR(landmark_loss(output, labels).item<double>(), 2 * (0.06 - 0.015) / 4, 1e-6);
  output.landmarks.zero_();
  output.landmark_logits = torch::zeros({1, 2});
  EXPECT_NEAR(landmark_loss(output, labels).item<double>(), std::log(2.0), 1e-6);
  output.landmarks = torch::empty({1, 0, 2});
  EXPECT_EQ(landmark_loss(output, labels).item<double>(), 0);
}

class MarkPlaces : public ::testing::Test {
 protected:
  // Two images, maps of 4 x 4 places; the first shows a birthmark of the second class at (x, y) = (0.1, -0.6) and, of
  // its four points, another at (-0.9, 0.9).
  void SetUp() override {
    output_.logits = torch::zeros({2, column_count()});
    output_.marks = torch::zeros({2, column_count() - first_column(Head::kStreak), 4, 4});
    labels_.classes = hidden_everywhere(2);
    labels_.mark_places = torch::full({2, 4, 4, 2}, NAN);
    labels_.classes[0][static_cast<int>(Head::kBirthmark)] = 2;
    labels_.mark_places[0][static_cast<int>(portrait::Mark::kBirthmark)][0].copy_(torch::tensor({0.1f, -0.6f}));
    labels_.mark_places[0][static_cast<int>(portrait::Mark::kBirthmark)][3].copy_(torch::tensor({-0.9f, 0.9f}));
  }
  torch::Tensor map(Head head, std::int64_t mark_class) {
    return output_.marks[0][first_column(head) - first_column(Head::kStreak) + mark_class];
  }
  double loss() const { return mark_place_loss(output_, labels_).item<double>(); }

  ClassifierOutput output_;
  Labels labels_;
};

TEST_F(MarkPlaces, AreCrossEntropiesOfThePlacesOfTheClassThatIsShown) {
  EXPECT_NEAR(loss(), std::log(16.0), 1e-5);
  map(Head::kBirthmark, 2)[0][2] = 40;
  map(Head::kBirthmark, 2)[3][0] = 40;
  EXPECT_NEAR(loss(), std::log(2.0), 1e-5);
  output_.marks.zero_();
  map(Head::kBirthmark, 2)[2][0] = 40;  // x and y exchanged
  EXPECT_GT(loss(), 30);
  output_.marks.zero_();
  map(Head::kBirthmark, 1)[2][0] = 40;  // another class
  EXPECT_NEAR(loss(), std::log(16.0), 1e-5);
}

TEST_F(MarkPlaces, OfHiddenOrAbsentMarksPushNothing) {
  output_.marks.requires_grad_();
  mark_place_loss(output_, labels_).backward();
  EXPECT_EQ(output_.marks.grad()[1].abs().max().item<double>(), 0);
  EXPECT_EQ(output_.marks.grad().ne(0).sum().item<std::int64_t>(), 16);  // one map
  EXPECT_TRUE(output_.marks.grad().isfinite().all().item<bool>());
  labels_.classes[0][static_cast<int>(Head::kBirthmark)] = kHidden;
  EXPECT_EQ(loss(), 0);
  labels_.classes[0][static_cast<int>(Head::kBirthmark)] = 2;
  labels_.mark_places.fill_(1.5);  // outside the image
  EXPECT_EQ(loss(), 0);
  output_.marks = torch::Tensor();
  EXPECT_EQ(loss(), 0);
}

}  // namespace
}  // namespace sdtune::train::classifier
