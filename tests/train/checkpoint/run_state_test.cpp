#include "train/checkpoint/run_state.h"

#include <gtest/gtest.h>

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
  ASSERT_TRUE(ours.winograd_convolutions);
  Json json = state_with_implementation(ours);
  EXPECT_EQ(RunState::from_json(json, "state").implementation, ours);
  json["implementation"].erase("convolutions_3x3");
  model::CpuImplementation before = ours;
  before.winograd_convolutions = false;
  EXPECT_EQ(RunState::from_json(json, "state").implementation, before);
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
