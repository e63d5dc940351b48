// The whole evaluation on known inputs: pictures of a "model" that are renders in truth. The judge is trained here for
// a few seconds, so it is a poor one; what must hold, holds for it too.
#include "train/evaluate/evaluation.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>

#include "tests/train/evaluate/oracle_reading.h"
#include "train/judge/judge_loss.h"
#include "train/judge/portrait_pictures.h"

namespace sdtune::train::evaluate {
namespace {

constexpr std::int64_t kPeople = 24, kViews = 4, kSteps = 60;

// Adam (Kingma and Ba 2015), without what a real training needs besides.
void train(judge::JudgeNetwork& network, const torch::Tensor& pictures, const judge::Labels& labels) {
  std::vector<torch::Tensor> weights = network->parameters(), mean, square;
  for (const torch::Tensor& weight : weights) {
    mean.push_back(torch::zeros_like(weight));
    square.push_back(torch::zeros_like(weight));
  }
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    network->zero_grad();
    judge::judge_loss(network(pictures), labels).backward();
    const torch::NoGradGuard no_grad;
    const auto t = static_cast<double>(step);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      mean[i].mul_(0.9).add_(weights[i].grad(), 0.1);
      square[i].mul_(0.98).addcmul_(weights[i].grad(), weights[i].grad(), 0.02);
      const torch::Tensor size = (square[i] / (1 - std::pow(0.98, t))).sqrt_().add_(1e-8);
      weights[i].sub_(mean[i] / (1 - std::pow(0.9, t)) / size, 1e-3);
    }
  }
}

judge::Judge trained_judge() {
  std::vector<portrait::Portrait> portraits;
  for (std::uint64_t i = 0; i < kPeople * kViews; ++i) {
    portraits.push_back(
        portrait::draw_portrait(portrait::picture_seeds(portrait::PortraitSet::kTraining, i / kViews, i % kViews)));
  }
  torch::manual_seed(1);
  judge::JudgeNetwork network;
  train(network, judge::portrait_pictures(portraits, judge::kJudgeSize, 2), judge::labels_of(portraits));
  judge::JudgeFigures figures;
  figures.by_references.threshold = 0.9;
  return judge::Judge(network, figures);
}

// Pictures of reserved person `number`, or of other people, that show what the prompt asks; how the prompt speaks of
// the person does not matter.
DrawPictures renders_of(std::optional<std::uint64_t> number) {
  return [number](const std::vector<std::string>& prompts, const std::vector<std::uint64_t>& seeds) {
    std::vector<portrait::Portrait> portraits;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      const auto found = std::find_if(eval_prompts().begin(), eval_prompts().end(), [&](const EvalPrompt& prompt) {
        return prompts[i] == prompt.text("sks person") || prompts[i] == prompt.text("a person");
      });
      if (found == eval_prompts().end()) throw std::logic_error("no such prompt: " + prompts[i]);
      const bool subject = number && prompts[i].find("sks") != std::string::npos;
      const auto seed = subject ? portrait::picture_seeds(portrait::PortraitSet::kReserved, *number, 20'000 + seeds[i])
                                : portrait::picture_seeds(portrait::PortraitSet::kValidation, 900'000 + seeds[i], 0);
      portraits.push_back({seed, portrait::draw_identity(seed.person), found->context(seed.picture), {}});
    }
    return judge::portrait_pictures(portraits, judge::kJudgeSize, 2);
  };
}

class WholeEvaluation : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    judge_ = std::make_unique<judge::Judge>(trained_judge());
    EvaluationPlan plan;
    plan.pictures_per_prompt = 4;
    plan.renders_per_prompt = 4;
    plan.class_pictures = 64;
    plan.class_pictures_per_prompt = 1;
    plan.threads = 2;
    const Subject subject = make_subject(*judge_, 3, rendered_references(3, 5));
    const Subject shuffled = make_subject(*judge_, 4, rendered_references(4, 5));
    // A model that has learned the subject perfectly, and a base that has not.
    result_ = std::make_unique<Evaluation>(
        evaluate(*judge_, subject, shuffled, {renders_of(3), renders_of(std::nullopt), {}}, plan));
  }
  static void TearDownTestSuite() {
    judge_.reset();
    result_.reset();
  }
  static Estimate figure(const std::string& row, const char* name) { return result_->row(row).find(name).value(); }

  static std::unique_ptr<judge::Judge> judge_;
  static std::unique_ptr<Evaluation> result_;
};
std::unique_ptr<judge::Judge> WholeEvaluation::judge_;
std::unique_ptr<Evaluation> WholeEvaluation::result_;

TEST_F(WholeEvaluation, RendersOfTheSubjectAreTheSubjectAndOtherPeopleAreNot) {
  EXPECT_NEAR(figure("tuned", kSubjectFidelity).value, 1.0, 0.25);
  EXPECT_NEAR(figure("renders", kSubjectFidelity).value, 1.0, 0.25);
  EXPECT_NEAR(figure("base", kSubjectFidelity).value, 0.0, 0.3);
  EXPECT_LT(figure("shuffled", kSubjectFidelity).value, 0.6);
  EXPECT_GT(figure("tuned", kSubjectFidelity).low, figure("base", kSubjectFidelity).high);
  EXPECT_GE(figure("tuned", kAccepted).value, figure("base", kAccepted).value);
}

TEST_F(WholeEvaluation, BothFollowTheirPromptsAlike) {
  EXPECT_NEAR(figure("tuned", kPromptFidelity).value, figure("renders", kPromptFidelity).value, 0.15);
  EXPECT_NEAR(figure("base", kPromptFidelity).value, figure("renders", kPromptFidelity).value, 0.15);
  EXPECT_GT(figure("tuned", kPromptFidelity).value, 0.4);  // a poor judge; chance is below 0.2
}

TEST_F(WholeEvaluation, TheClassIsUntouched) {
  EXPECT_DOUBLE_EQ(result_->diversity_kept, 1.0);
  EXPECT_DOUBLE_EQ(result_->class_fidelity_kept, 1.0);
  EXPECT_DOUBLE_EQ(figure("tuned", kLeak).value, figure("base", kLeak).value);
  EXPECT_LT(figure("tuned", kFrechetDistance).value, 1.5 * figure("renders", kFrechetDistance).value);
}

TEST_F(WholeEvaluation, ShowsOnePictureAPrompt) {
  const auto prompts = static_cast<std::int64_t>(eval_prompts().size());
  EXPECT_EQ(result_->tuned_pictures.sizes(), (torch::IntArrayRef{prompts, 3, 64, 64}));
  EXPECT_EQ(result_->base_pictures.sizes(), result_->tuned_pictures.sizes());
  EXPECT_EQ(result_->references.size(0), 5);
  EXPECT_THROW(evaluate(*judge_, make_subject(*judge_, 3, rendered_references(3, 2)),
                        make_subject(*judge_, 3, rendered_references(3, 2)), {}, {}),
               std::invalid_argument);
}

}  // namespace
}  // namespace sdtune::train::evaluate
