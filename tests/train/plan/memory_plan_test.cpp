#include "train/plan/memory_plan.h"

#include <gtest/gtest.h>

#include <numeric>

#include "model/files/install_paths.h"
#include "train/optim/optimizer.h"
#include "train/optim/state_size.h"
#include "train/plan/run_plan.h"

namespace sdtune::train {
namespace {

std::int64_t bytes_of(const MemoryPhase& phase, const std::string& name) {
  for (const MemoryPart& part : phase.parts) {
    if (part.name == name) return part.bytes;
  }
  ADD_FAILURE() << phase.name << " has no part " << name;
  return 0;
}

const MemoryPhase& phase_of(const MemoryPlan& plan, const std::string& name) {
  for (const MemoryPhase& phase : plan.phases) {
    if (phase.name == name) return phase;
  }
  throw std::out_of_range(name);
}

PlanRequest embedded(std::int64_t photos) {
  PlanRequest request;
  request.config.run.base = find_shared_file("models/portrait-64").string();
  request.config.run.train_batch_size = 4;
  request.photos = photos;
  request.find_savings = false;
  return request;
}

TEST(OptimizerStateBytes, AreWhatEachOptimizerKeeps) {
  for (const char* name : {"adamw", "adamw_8bit", "adafactor", "lion", "prodigy"}) {
    OptimOptions options;
    options.optimizer = name;
    if (std::string(name) == "prodigy") options.learning_rate = 1;
    const std::vector<std::vector<std::int64_t>> shapes = {{7}, {4097}, {33, 65}, {129, 40}, {16, 8, 3, 3}};
    std::vector<TrainedParameter> parameters;
    std::int64_t expected = 0;
    for (const std::vector<std::int64_t>& shape : shapes) {
      const torch::Tensor weight = torch::zeros(shape);
      parameters.push_back(
          {std::string("w").append(std::to_string(parameters.size())), weight, torch::zeros_like(weight), {}, 0});
      expected += optimizer_state_bytes(options, shape);
    }
    std::int64_t kept = 0;
    for (const auto& [key, state] : make_optimizer(std::move(parameters), options)->states()) {
      if (key != "prodigy.estimate") kept += static_cast<std::int64_t>(state.nbytes());
    }
    EXPECT_EQ(kept, expected) << name;
  }
}

TEST(RunPlan, CountsEveryTrainedNumberOnce) {
  const RunPlan plan = plan_run(embedded(5));
  const MemoryPhase& training = phase_of(plan.on_cpu, "training");
  EXPECT_EQ(bytes_of(training, "gradients"), 4 * plan.run.trainable_parameters);
  EXPECT_EQ(bytes_of(training, "states of adamw"), 8 * plan.run.trainable_parameters);
  EXPECT_EQ(bytes_of(training, "weights of unet"), 4 * plan.run.trainable_parameters);  // the UNet alone is trained
  EXPECT_EQ(plan.run.total_steps, 500);
  EXPECT_DOUBLE_EQ(plan.run.epochs(), 400);
}

// With dco_beta: LoRA leaves the base's weights as they are, so nothing is kept twice.
TEST(RunPlan, CountsTheWeightsBeforeTrainingAndTheirForwardPass) {
  PlanRequest request = embedded(5);
  const RunPlan plain = plan_run(request);
  request.config.objective.dco_beta = 10;
  const RunPlan full = plan_run(request);
  const MemoryPhase& training = phase_of(full.on_cpu, "training");
  EXPECT_EQ(bytes_of(training, "weights of unet before training"), bytes_of(training, "weights of unet"));
  EXPECT_NEAR(full.work.step / plain.work.step, 4.0 / 3,
              0.05);  // a backward pass computes twice what a forward one does
  request.config.run.method = "lora";
  for (const MemoryPart& part : phase_of(plan_run(request).on_cpu, "training").parts) {
    EXPECT_NE(part.name, "weights of unet before training");
  }
}

// Images are generated with the averages as the model's weights, and the others are kept meanwhile.
TEST(RunPlan, CountsTheTrainedWeightsBesideTheAverages) {
  PlanRequest request = embedded(5);
  request.config.observe.validation_prompt = "a photo";
  request.config.optim.use_ema = true;
  const std::string name = "trained weights beside the averages";
  const RunPlan plan = plan_run(request);
  for (const MemoryPlan* memory : {&plan.on_cpu, &plan.on_gpu}) {
    const MemoryPhase& generating = phase_of(*memory, "generating validation images");
    EXPECT_EQ(bytes_of(generating, name), bytes_of(generating, "weights of unet"));
    for (const MemoryPart& part : phase_of(*memory, "training").parts) EXPECT_NE(part.name, name);
  }
  request.config.optim.use_ema = false;
  const RunPlan without = plan_run(request);
  for (const MemoryPart& part : phase_of(without.on_cpu, "generating validation images").parts) {
    EXPECT_NE(part.name, name);
  }
}

TEST(RunPlan, ActivationsGrowWithTheMicroBatchAndShrinkWithRecomputation) {
  const auto kept = [](const PlanRequest& request) {
    return bytes_of(phase_of(plan_run(request).on_cpu, "training"), "activations kept for backward");
  };
  PlanRequest request = embedded(5);
  const std::int64_t four = kept(request);
  request.config.run.micro_batch = std::to_string(2);
  EXPECT_NEAR(static_cast<double>(kept(request)) / static_cast<double>(four), 0.5, 0.02);
  request.config.run.micro_batch.clear();
  request.config.run.gradient_checkpointing = true;
  EXPECT_LT(kept(request), four / 2);
}

TEST(RunPlan, PartsOfTheModelAddUpToTheActivations) {
  const RunPlan plan = plan_run(embedded(5));
  std::int64_t sum = 0;
  for (const MemoryPart& part : plan.activations) sum += part.bytes;
  EXPECT_EQ(sum, bytes_of(phase_of(plan.on_cpu, "training"), "activations kept for backward"));
}

TEST(RunPlan, LowPrecisionHasMastersAndHalfTheWeights) {
  PlanRequest request = embedded(5);
  request.config.precision.mixed_precision = "no";
  const std::int64_t full = bytes_of(phase_of(plan_run(request).on_gpu, "training"), "weights of unet");
  request.config.precision.mixed_precision = "bf16";
  const RunPlan plan = plan_run(request);
  const MemoryPhase& training = phase_of(plan.on_gpu, "training");
  EXPECT_EQ(bytes_of(training, "weights of unet"), full / 2);
  EXPECT_EQ(bytes_of(training, "float32 masters"), 4 * plan.run.trainable_parameters);
  // A GPU may split the batch to fit, and then sums in float32; a CPU computes it as a whole.
  EXPECT_EQ(bytes_of(training, "gradients"), 4 * plan.run.trainable_parameters);
  EXPECT_EQ(bytes_of(phase_of(plan.on_cpu, "training"), "gradients"), 2 * plan.run.trainable_parameters);
}

TEST(RunPlan, WorkOfAStepIsThatOfItsSamples) {
  PlanRequest request = embedded(5);
  const double four = plan_run(request).work.step;
  request.config.run.gradient_accumulation_steps = 3;
  EXPECT_NEAR(plan_run(request).work.step / four, 3, 1e-9);
  request.config.run.gradient_accumulation_steps = 1;
  request.config.data.with_prior_preservation = true;
  EXPECT_NEAR(plan_run(request).work.step / four, 2, 0.02);
}

TEST(RunPlan, NeedsPhotosOrTheirNumber) {
  PlanRequest request = embedded(5);
  request.photos.reset();
  EXPECT_THROW(plan_run(request), ConfigError);
}

}  // namespace
}  // namespace sdtune::train
