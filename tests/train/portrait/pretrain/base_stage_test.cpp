#include "train/portrait/pretrain/base_stage.h"

#include <gtest/gtest.h>

#include "model/tokenizer/byte_pair_learner.h"
#include "tests/support/scratch_folder.h"
#include "train/portrait/pretrain/base_design.h"

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

TEST(BaseStage, OnlyTheWeighingChangesTheLoss) {
  Nano nano;
  const double plain = nano.loss(1), heads = nano.loss(5);
  EXPECT_NE(plain, heads);
  EXPECT_NEAR(heads / plain, 1, 0.5);  // a mean of the same errors
  EXPECT_NEAR(nano.loss(1.0001), plain, 1e-3 * plain);
}

}  // namespace
}  // namespace sdtune::train::pretrain
