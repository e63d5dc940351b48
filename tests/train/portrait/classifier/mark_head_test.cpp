#include "train/portrait/classifier/mark_head.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>

#include "train/portrait/classifier/classifier_heads.h"
#include "train/portrait/classifier/classifier_network.h"

namespace sdtune::train::classifier {
namespace {

TEST(MarkHead, AnImageShowsWhatOneOfItsPlacesShows) {
  torch::Tensor marks = torch::zeros({2, 3, 8, 8});
  EXPECT_NEAR(of_any_place(marks).abs().max().item<double>(), 0, 1e-6);
  marks[1][2][7][3] = 20;
  const torch::Tensor image = of_any_place(marks);
  EXPECT_EQ(image.sizes(), (torch::IntArrayRef{2, 3}));
  EXPECT_NEAR(image[1][2].item<double>(), 20 - std::log(64.0), 1e-4);
  EXPECT_NEAR(image[1][1].item<double>(), 0, 1e-6);
  EXPECT_GT(std::abs(image[1][2].item<double>() - marks[1][2].mean().item<double>()), 10);  // a mean would lose it
}

// To have no mark is what the other classes are measured by: it is 0 at every place.
TEST(MarkHead, NamesTheMarksOfEveryHeadAtEveryPlace) {
  torch::manual_seed(7);
  const torch::NoGradGuard no_grad;
  ClassifierNetwork network(ClassifierDesign::of_size(128, "test"));
  const ClassifierOutput output = network(torch::rand({2, 3, 128, 128}) * 2 - 1);
  ASSERT_EQ(output.marks.sizes(), (torch::IntArrayRef{2, column_count() - first_column(Head::kStreak), 32, 32}));
  for (const Head head : {Head::kStreak, Head::kBirthmark, Head::kEarrings, Head::kMole, Head::kScar}) {
    const std::int64_t first = first_column(head) - first_column(Head::kStreak);
    EXPECT_EQ(output.marks.select(1, first).abs().max().item<double>(), 0);
    const auto classes = static_cast<std::int64_t>(head_info(head).classes.size());
    for (std::int64_t named = 1; named < classes; ++named) {
      EXPECT_GT(output.marks.select(1, first + named).abs().max().item<double>(), 0);
    }
  }
  EXPECT_FALSE(ClassifierNetwork()(torch::zeros({1, 3, 64, 64})).marks.defined());
}

// A spot of a few pixels changes what is read where it lies, far less elsewhere.
TEST(MarkHead, ReadsAPlaceFromWhatIsThere) {
  torch::manual_seed(7);
  const torch::NoGradGuard no_grad;
  ClassifierNetwork network(ClassifierDesign::of_size(128, "test"));
  torch::Tensor images = torch::zeros({1, 3, 128, 128});
  const torch::Tensor before = network(images).marks;
  images.slice(2, 40, 44).slice(3, 80, 84).fill_(1);
  const torch::Tensor change = (network(images).marks - before).abs().sum(1)[0];
  const torch::Tensor where = change.flatten().argmax();
  EXPECT_NEAR(static_cast<double>(where.item<std::int64_t>() / 32), 10, 1.5);
  EXPECT_NEAR(static_cast<double>(where.item<std::int64_t>() % 32), 20, 1.5);
}

}  // namespace
}  // namespace sdtune::train::classifier
