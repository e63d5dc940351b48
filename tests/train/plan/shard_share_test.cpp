// What ranks keep of the published models when they share gradients and states out. No pass is traced: that takes
// minutes.
#include <gtest/gtest.h>

#include "model/files/install_paths.h"
#include "model/pipeline/empty_bundle.h"
#include "model/single_file/published_configs.h"
#include "train/plan/memory_plan.h"

namespace sdtune::train {
namespace {

struct Kept {
  double gradients = 0, states = 0;
};

Kept kept_by_a_rank(const TrainConfig& config, const ModelTrace& trace, std::int64_t ranks) {
  TrainedBatch batch;
  batch.ranks = ranks;
  Kept kept;
  for (const MemoryPhase& phase : plan_memory(config, trace, batch, {}, true).phases) {
    for (const MemoryPart& part : phase.parts) {
      if (phase.name != "training") continue;
      if (part.name == "gradients") kept.gradients = static_cast<double>(part.bytes);
      if (part.name.starts_with("states of ")) kept.states = static_cast<double>(part.bytes);
    }
  }
  return kept;
}

struct SharedModel {
  const char* name;
  model::ModelFamily family;
  const char* optimizer;
  std::vector<std::int64_t> ranks;
};

class PublishedModel : public testing::TestWithParam<SharedModel> {};

// The rank that keeps the most has 1/N of gradients and states, and 5 % more of that at most.
TEST_P(PublishedModel, IsSharedEvenly) {
  TrainConfig config;
  config.optim.optimizer = GetParam().optimizer;
  config.dist.shard = "gradients";
  config.precision.mixed_precision = "no";
  const std::filesystem::path vocabulary = find_shared_file("models/portrait-64/tokenizer");
  const ModelTrace trace(config,
                         model::empty_bundle(model::published_configs(GetParam().family, "epsilon", vocabulary), {}));
  const Kept whole = kept_by_a_rank(config, trace, 1);
  ASSERT_GT(whole.states, 0);
  for (const std::int64_t ranks : GetParam().ranks) {
    const Kept own = kept_by_a_rank(config, trace, ranks);
    const double gradients = own.gradients / whole.gradients * static_cast<double>(ranks);
    const double states = own.states / whole.states * static_cast<double>(ranks);
    std::printf("%s, %s, %ld ranks: gradients %.4f / %ld, states %.4f / %ld\n", GetParam().name, GetParam().optimizer,
                static_cast<long>(ranks), gradients, static_cast<long>(ranks), states, static_cast<long>(ranks));
    EXPECT_TRUE(gradients >= 1 && gradients <= 1.05) << gradients << " at " << ranks << " ranks";
    EXPECT_TRUE(states >= 1 && states <= 1.05) << states << " at " << ranks << " ranks";
  }
  config.dist.shard = "none";  // the mutant
  EXPECT_EQ(kept_by_a_rank(config, trace, 2).states, whole.states);
}

INSTANTIATE_TEST_SUITE_P(Published, PublishedModel,
                         testing::Values(SharedModel{"sd15", model::ModelFamily::kSd1, "adamw", {2, 3, 4, 8}},
                                         SharedModel{"sd15", model::ModelFamily::kSd1, "adafactor", {4}},
                                         SharedModel{"sdxl", model::ModelFamily::kSdxl, "adamw_8bit", {8}}));

}  // namespace
}  // namespace sdtune::train
