#include "train/portrait/pretrain/base_stage.h"

#include <gtest/gtest.h>

#include "model/tokenizer/byte_pair_learner.h"
#include "tests/support/scratch_folder.h"
#include "train/portrait/pretrain/base_design.h"
#include "train/portrait/scene/head_place.h"

namespace sdtune::train::pretrain {
namespace {

struct Nano {
  test::ScratchFolder scratch;
  ImagePool images;
  model::ModelBundle base;
  LatentPool latents;

  Nano()
      : images(real_file_system(),
               {.folder = scratch.path() / "pictures", .size = 64, .count = 16, .views = 4, .threads = 2}),
        base(new_base(BaseDesign::named("nano"), words(images), 1)),
        latents(real_file_system(), scratch.path() / "latents", base.vae, images) {}

  static ClipTokenizer words(const ImagePool& pool) {
    std::vector<std::string> texts;
    for (std::int64_t i = 0; i < 500; ++i) texts.push_back(pool.portrait(i).caption);
    return learn_tokenizer(texts, BaseDesign::named("nano").vocabulary);
  }
  double loss(double head_weight) {
    BaseStageOptions options;
    options.batch_size = 8;
    options.head_weight = head_weight;
    return BaseStage(base, images, latents, options).loss(3).item<double>();
  }
};

TEST(BaseStage, WeighsTheHeadWhereTheImageShowsIt) {
  Nano nano;
  const BaseStage stage(nano.base, nano.images, nano.latents, {});
  const std::vector<std::int64_t> indices = {0, 5, 11};
  const torch::Tensor weights = stage.heads(indices, 16);
  ASSERT_EQ(weights.sizes().vec(), (std::vector<std::int64_t>{3, 1, 16, 16}));
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const portrait::HeadPlace head = portrait::head_place(nano.images.portrait(indices[i]).now);
    const torch::Tensor one = weights[static_cast<std::int64_t>(i)][0];
    const auto column = static_cast<std::int64_t>((head.x + 1) * 8), row = static_cast<std::int64_t>((1 - head.y) * 8);
    EXPECT_EQ(one[row][column].item<float>(), 1.0f);
    EXPECT_EQ(one[15][0].item<float>(), 0.0f);  // the lower left corner
    const double share = one.mean().item<double>();
    EXPECT_GT(share, 0.2);
    EXPECT_LT(share, 0.6);
  }
}

TEST(BaseStage, OnlyTheWeighingChangesTheLoss) {
  Nano nano;
  const double plain = nano.loss(1), heads = nano.loss(5);
  EXPECT_NE(plain, heads);
  EXPECT_NEAR(heads / plain, 1, 0.5);  // a mean of the same errors
  EXPECT_NEAR(nano.loss(1.0001), plain, 1e-3 * plain);
}

}  // namespace
}  // namespace sdtune::train::pretrain
