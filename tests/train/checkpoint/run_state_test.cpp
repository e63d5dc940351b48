#include "train/checkpoint/run_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/base/error.h"

namespace sdtune::train {
namespace {

Json state_with_implementation(const model::CpuImplementation& implementation) {
  RunState state;
  state.implementation = implementation;
  return state.to_json();
}

// What a run began with before a choice existed is the choice's second value: it goes on with the same bits.
TEST(RunState, OfBeforeAChoiceGoesOnWithout) {
  const model::CpuImplementation ours;
  const Json json = state_with_implementation(ours);
  EXPECT_EQ(RunState::from_json(json, "state").implementation, ours);
  const std::vector<std::string> later = {
      "convolutions_3x3",        "attention_bfloat16",        "attention_backward_bfloat16",
      "convolutions_bfloat16",   "attention_heads",           "attention_causal",
      "small_products",          "convolutions_3x3_bfloat16", "attention_exponential_bfloat16",
      "convolutions_3x3_kernels"};
  for (const model::CpuChoice& choice : model::kCpuChoices) {
    Json older = json;
    older["implementation"].erase(choice.name);
    EXPECT_EQ(choice.came_later, std::count(later.begin(), later.end(), choice.name) == 1) << choice.name;
    if (!choice.came_later) continue;
    model::CpuImplementation before = ours;
    before.*choice.is_first = false;
    EXPECT_EQ(RunState::from_json(older, "state").implementation, before) << choice.name;
  }
}

// Versions before the record was kept had none of the choices that came later; the others are those that hold now.
TEST(RunState, WithoutARecordGoesOnWithoutWhatCameLater) {
  model::CpuImplementation now;
  now.onednn_products = false;
  const model::CpuImplementationScope scope(now);
  Json json = state_with_implementation({});
  json.erase("implementation");
  const model::CpuImplementation found = RunState::from_json(json, "state").implementation.value();
  EXPECT_EQ(model::implementation_text(found),
            "attention tiled, products mkl, convolutions patches, layout channels_last, convolutions_3x3 direct, "
            "attention_bfloat16 float32, attention_backward_bfloat16 float32, convolutions_bfloat16 library, "
            "attention_heads multiples_of_8, attention_causal library, small_products library, "
            "convolutions_3x3_bfloat16 direct, attention_exponential_bfloat16 long, convolutions_3x3_kernels whole");
}

TEST(RunState, RefusesWhatIsNoChoice) {
  Json lacking = state_with_implementation({}), unknown = lacking;
  lacking["implementation"].erase("attention");
  EXPECT_THROW(RunState::from_json(lacking, "state"), WeightError);
  unknown["implementation"]["convolutions_3x3"] = "fast";
  EXPECT_THROW(RunState::from_json(unknown, "state"), WeightError);
}

}  // namespace
}  // namespace sdtune::train
