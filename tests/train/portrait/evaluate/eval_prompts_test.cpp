#include "train/portrait/evaluate/eval_prompts.h"

#include <gtest/gtest.h>

#include <set>

namespace sdtune::train::evaluate {
namespace {

TEST(EvalPrompts, ReadAsCaptionsDo) {
  EXPECT_EQ(plain_prompt().text("sks person"), "a photo of sks person");
  std::set<std::string> texts;
  for (const EvalPrompt& prompt : eval_prompts()) texts.insert(prompt.text("a person"));
  EXPECT_EQ(texts.size(), eval_prompts().size());
  EXPECT_TRUE(texts.contains("a pencil sketch of a person"));
  EXPECT_TRUE(texts.contains("a photo of a person wearing a green beanie"));
}

// Whatever the seed, the context shows what is asked, and nothing that captions would name besides.
TEST(EvalPrompts, ContextsShowWhatIsAsked) {
  for (const EvalPrompt& prompt : eval_prompts()) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      const portrait::Portrait portrait{{}, portrait::draw_identity(1), prompt.context(seed), {}};
      for (const Asked& asked : prompt.asked) {
        EXPECT_EQ(classifier::visible_class(asked.head, portrait), asked.shown) << prompt.text("x");
      }
      if (!prompt.asks(classifier::Head::kHat)) {
        EXPECT_EQ(portrait.now.hat, portrait::Hat::kNone);
      }
      if (!prompt.asks(classifier::Head::kGlasses)) {
        EXPECT_EQ(portrait.now.glasses, portrait::Glasses::kNone);
      }
      if (!prompt.asks(classifier::Head::kStyle)) {
        EXPECT_EQ(portrait.now.style, portrait::Style::kPhoto);
      }
    }
  }
}

TEST(EvalPrompts, LeaveOpenWhatIsNotAsked) {
  std::set<portrait::Place> places;
  std::set<float> turns;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    places.insert(plain_prompt().context(seed).place);
    turns.insert(plain_prompt().context(seed).yaw);
  }
  EXPECT_EQ(places.size(), portrait::kPlaceNames.size());
  EXPECT_GT(turns.size(), 50u);
}

}  // namespace
}  // namespace sdtune::train::evaluate
