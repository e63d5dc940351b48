// The whole evaluation on known inputs: the "models" give back known portraits, and the classifier is one without
// fault. An image is blank but for its first pixel, which says where in a list its portrait stands.
#include "train/portrait/evaluate/evaluation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>

#include "model/base/error.h"
#include "tests/train/portrait/evaluate/oracle_reading.h"

namespace sdtune::train::evaluate {
namespace {

class NumberedImages {
 public:
  torch::Tensor render(const std::vector<portrait::Portrait>& portraits) {
    torch::Tensor images = torch::zeros({static_cast<std::int64_t>(portraits.size()), 3, 64, 64});
    for (std::size_t i = 0; i < portraits.size(); ++i) {
      images[static_cast<std::int64_t>(i)][0][0][0] = static_cast<float>(shown_.size());
      shown_.push_back(portraits[i]);
    }
    return images;
  }
  classifier::Reading read(const torch::Tensor& images) const {
    std::vector<portrait::Portrait> portraits;
    for (std::int64_t i = 0; i < images.size(0); ++i) {
      portraits.push_back(shown_.at(static_cast<std::size_t>(images[i][0][0][0].item<float>())));
    }
    return test::oracle_reading(portraits);
  }

 private:
  std::vector<portrait::Portrait> shown_;
};

// What a model generates: whom it shows for "sks person" and for "a person" (unset: another person each time), and
// whether it listens to the rest of the prompt.
struct FakeModel {
  std::optional<std::uint64_t> subject;
  std::optional<std::uint64_t> person;
  bool listens = true;
};

class WholeEvaluation : public ::testing::Test {
 protected:
  // broken: the name of the model whose last image is NaN.
  Evaluation evaluated(const FakeModel& tuned, const std::string& broken = "") {
    EvaluationTools tools;
    tools.tuned = drawn_by(tuned, broken == tools.tuned_name);
    tools.base = drawn_by({}, broken == tools.base_name);
    tools.render = [this](const auto& portraits) { return images_.render(portraits); };
    tools.read = [this](const torch::Tensor& images) { return images_.read(images); };
    EvaluationPlan plan;
    plan.images_per_prompt = 2;
    plan.renders_per_prompt = 2;
    plan.class_images = 48;
    plan.class_images_per_prompt = 1;
    plan.accepted_from = 0.5;
    return evaluate(test::oracle_subject(3), test::oracle_subject(4), tools, plan);
  }

  static double figure(const Evaluation& result, const std::string& row, const char* name) {
    return result.row(row).find(name).value().value;
  }

 private:
  GenerateImages drawn_by(const FakeModel& model, bool broken) {
    return [this, model, broken](const std::vector<std::string>& prompts, const std::vector<std::uint64_t>& seeds) {
      std::vector<portrait::Portrait> portraits;
      for (std::size_t i = 0; i < prompts.size(); ++i) {
        const bool of_subject = prompts[i].find("sks person") != std::string::npos;
        const std::optional<std::uint64_t> who = of_subject ? model.subject : model.person;
        const auto seed = who ? portrait::image_seeds(portrait::PortraitSet::kReserved, *who, 50'000 + seeds[i])
                              : portrait::image_seeds(portrait::PortraitSet::kValidation, 900'000 + seeds[i], 0);
        const EvalPrompt& prompt = model.listens ? prompt_of(prompts[i]) : plain_prompt();
        portraits.push_back({seed, portrait::draw_identity(seed.person), prompt.context(seed.image), {}});
      }
      torch::Tensor images = images_.render(portraits);
      if (broken) images[-1].fill_(std::numeric_limits<float>::quiet_NaN());
      return images;
    };
  }

  static const EvalPrompt& prompt_of(const std::string& text) {
    const auto found = std::find_if(eval_prompts().begin(), eval_prompts().end(), [&](const EvalPrompt& prompt) {
      return text == prompt.text("sks person") || text == prompt.text("a person");
    });
    if (found == eval_prompts().end()) throw std::logic_error("no such prompt: " + text);
    return *found;
  }

  NumberedImages images_;
};

TEST_F(WholeEvaluation, OfRendersOfTheSubjectIsFullAndOfOtherPeopleNothing) {
  const Evaluation result = evaluated({.subject = 3, .person = std::nullopt});
  for (const char* row : {"tuned", "renders"}) {
    EXPECT_NEAR(figure(result, row, kSubjectFidelity), 1.0, 0.05) << row;
    for (const char* name : {kAccepted, kAttributeMatch, kPromptFidelity}) {
      EXPECT_DOUBLE_EQ(figure(result, row, name), 1.0) << row << " " << name;
    }
  }
  for (const char* row : {"base", "shuffled"}) {
    EXPECT_NEAR(figure(result, row, kSubjectFidelity), 0.0, 0.15) << row;
    EXPECT_DOUBLE_EQ(figure(result, row, kAccepted), 0.0) << row;
    EXPECT_LT(figure(result, row, kAttributeMatch), 0.6) << row;
    EXPECT_DOUBLE_EQ(figure(result, row, kPromptFidelity), 1.0) << row;
  }
  EXPECT_DOUBLE_EQ(result.accepted_of_renders, 1.0);
  EXPECT_DOUBLE_EQ(result.diversity_kept, 1.0);
  EXPECT_DOUBLE_EQ(result.class_fidelity_kept, 1.0);
  EXPECT_DOUBLE_EQ(figure(result, "tuned", kLeak), 0.0);
}

TEST_F(WholeEvaluation, OfAModelThatLearnedNothingIsThatOfItsBase) {
  const Evaluation result = evaluated({});
  for (const auto& [name, estimate] : result.row("base").figures) {
    EXPECT_DOUBLE_EQ(figure(result, "tuned", name.c_str()), estimate.value) << name;
  }
  EXPECT_DOUBLE_EQ(result.accepted_of_renders, 0.0);
}

TEST_F(WholeEvaluation, OfAModelThatTurnsEverybodyIntoTheSubjectShowsTheLeak) {
  const Evaluation result = evaluated({.subject = 3, .person = 3});
  EXPECT_DOUBLE_EQ(figure(result, "tuned", kLeak), 1.0);
  EXPECT_NEAR(result.diversity_kept, 0.0, 1e-9);
  EXPECT_DOUBLE_EQ(figure(result, "tuned", kAccepted), 1.0);  // which alone would praise it
}

TEST_F(WholeEvaluation, OfAModelThatIsDeafToPromptsLosesPromptFidelity) {
  const Evaluation result = evaluated({.subject = 3, .person = std::nullopt, .listens = false});
  EXPECT_LT(figure(result, "tuned", kPromptFidelity), 0.3);
  EXPECT_LT(result.class_fidelity_kept, 0.4);
  EXPECT_NEAR(figure(result, "tuned", kSubjectFidelity), 1.0, 0.05);
}

TEST_F(WholeEvaluation, OfAnotherPersonFitsOnlyTheShuffledSubject) {
  const Evaluation result = evaluated({.subject = 4, .person = std::nullopt});
  EXPECT_DOUBLE_EQ(figure(result, "tuned", kAccepted), 0.0);
  EXPECT_DOUBLE_EQ(figure(result, "shuffled", kAccepted), 1.0);
}

TEST_F(WholeEvaluation, ShowsTheFirstImageOfEachPrompt) {
  const Evaluation result = evaluated({});
  const auto prompts = static_cast<std::int64_t>(eval_prompts().size());
  EXPECT_EQ(result.tuned_images.sizes(), (torch::IntArrayRef{prompts, 3, 64, 64}));
  EXPECT_EQ(result.base_images.sizes(), result.tuned_images.sizes());
  EXPECT_EQ(result.references.size(0), 5);
}

TEST_F(WholeEvaluation, OfImagesThatAreNotFiniteNamesTheModel) {
  for (const bool is_tuned : {true, false}) {
    try {
      evaluated({}, is_tuned ? "tuned model" : "base");
      FAIL() << "must be refused";
    } catch (const DataError& error) {
      EXPECT_EQ(error.problems().front().where, is_tuned ? "tuned model" : "base");
      EXPECT_NE(error.problems().front().what.find("not finite"), std::string::npos);
    }
  }
}

TEST(Evaluation, NeedsAnotherSubjectToShuffle) {
  const Subject subject = test::oracle_subject(3);
  EXPECT_THROW(evaluate(subject, subject, {}, {}), std::invalid_argument);
}

}  // namespace
}  // namespace sdtune::train::evaluate
