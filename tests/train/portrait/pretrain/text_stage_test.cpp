#include "train/portrait/pretrain/text_stage.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "model/tokenizer/byte_pair_learner.h"
#include "tests/support/scratch_folder.h"
#include "train/portrait/classifier/classifier_heads.h"
#include "train/portrait/pretrain/base_design.h"
#include "train/portrait/pretrain/stage_loop.h"
#include "train/portrait/scene/attributes.h"

namespace sdtune::train::pretrain {
namespace {

PoolOptions pool_of(const std::filesystem::path& folder) {
  return {.folder = folder / "pictures", .size = 16, .count = 2048, .views = 4, .threads = 1};
}

model::ModelBundle nano_base(const ImagePool& pool) {
  std::vector<std::string> texts;
  for (std::int64_t i = 0; i < 500; ++i) texts.push_back(pool.portrait(i).caption);
  const BaseDesign design = BaseDesign::named("nano");
  return new_base(design, learn_tokenizer(texts, design.vocabulary), 1);
}

TEST(TextStage, LossIsAFunctionOfWeightsSeedAndStep) {
  const test::ScratchFolder scratch;
  ImagePool pool(real_file_system(), pool_of(scratch.path()));
  model::ModelBundle base = nano_base(pool);
  TextStage stage(base, pool, 5, 8), same(base, pool, 5, 8);
  const double loss = stage.loss(7).item<double>();
  EXPECT_EQ(same.loss(7).item<double>(), loss);
  EXPECT_NE(same.loss(8).item<double>(), loss);
}

// A key's bias shifts all weights of an attention alike, so it has no gradient.
TEST(TextStage, ReachesEveryParameter) {
  const test::ScratchFolder scratch;
  ImagePool pool(real_file_system(), pool_of(scratch.path()));
  model::ModelBundle base = nano_base(pool);
  TextStage stage(base, pool, 5, 8);
  stage.loss(0).backward();
  for (const NamedParameter& parameter : stage.parameters()) {
    EXPECT_TRUE(parameter.weight.grad().defined() || parameter.name.ends_with("k_proj.bias")) << parameter.name;
  }
}

// After seconds of training a network of 32 numbers a word, the end of a caption says which wall it named, wherever in
// the sentence that stood.
TEST(TextStage, TheEncoderLearnsToReadColours) {
  const test::ScratchFolder scratch;
  ImagePool pool(real_file_system(), pool_of(scratch.path()));
  model::ModelBundle base = nano_base(pool);
  TextStage stage(base, pool, 5, 32);
  StagePlan plan;
  plan.folder = scratch.path() / "text";
  plan.total_steps = 400;
  plan.warmup_steps = 10;
  plan.average_decay = 0.9;
  plan.optim.learning_rate = 5e-3;
  StageLoop loop(stage, plan, {});
  EXPECT_EQ(loop.run({}), StageEnd::kFinished);
  loop.settle();
  const torch::NoGradGuard no_grad;
  int right = 0;  // of eighteen, where guessing has two
  for (std::size_t i = 0; i < portrait::kColorNames.size(); ++i) {
    const std::string wall = " in front of a " + std::string(portrait::kColorNames[i]) + " wall";
    for (const std::string& text :
         {"a photo of a person" + wall, "a photo of a person" + wall + ", wearing a pink hoodie"}) {
      const torch::Tensor logits = stage.logits({text})[0];
      const torch::Tensor of_wall = logits.narrow(0, classifier::first_column(classifier::Head::kWallColor), 9);
      right += of_wall.argmax().item<std::int64_t>() == static_cast<std::int64_t>(i) ? 1 : 0;
    }
  }
  EXPECT_GE(right, 9);
}

}  // namespace
}  // namespace sdtune::train::pretrain
