// Everything a run is made of, wired together once by build_run.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/pipeline/bundle.h"
#include "train/checkpoint/run_state.h"
#include "train/config/run_folder.h"
#include "train/config/train_config.h"
#include "train/dist/gradient_buckets.h"
#include "train/dist/process_group.h"
#include "train/dist/step_times.h"
#include "train/dist/stop_agreement.h"
#include "train/objective/diffusion_loss.h"
#include "train/observe/observer.h"
#include "train/optim/lr_schedule.h"
#include "train/optim/optimizer.h"
#include "train/optim/trained_parameter.h"
#include "train/optim/weight_average.h"
#include "train/parameters/lora_parameters.h"
#include "train/precision/grad_scaler.h"
#include "train/prepare/resting_parts.h"
#include "train/prepare/training_data.h"
#include "train/shard/shards.h"

namespace sdtune::train {

class StepGraphs;

struct Run {
  explicit Run(model::ModelBundle base) : bundle(std::move(base)) {}

  TrainConfig config;  // every option resolved
  RunFolder folder;
  torch::Device device = torch::kCPU;
  torch::Dtype dtype = torch::kFloat32;
  std::shared_ptr<ProcessGroup> group;
  std::unique_ptr<StopAgreement> stops;
  std::unique_ptr<StepTimes> times;
  std::int64_t micro_batch = 1;  // photos of one forward, and as many class images
  bool uses_chunks = false;      // each thread of a CPU computes samples of its own (computes_in_chunks)
  std::int64_t total_steps = 0;
  std::int64_t text_steps = 0;  // the first ones, in which the text encoders are trained
  std::int64_t first_step = 0;  // steps already done when this attempt began
  std::int64_t attempt = 1;

  model::ModelBundle bundle;
  ResumeFingerprint fingerprint;
  TrainingData data;
  std::unique_ptr<RestingParts> resting;  // null: every part stays on the device
  std::unique_ptr<DiffusionLoss> loss;
  model::UNet2DConditionModel base_unet{nullptr};  // of the weights before training; null without dco_beta
  std::shared_ptr<DropoutSamples> dropout = std::make_shared<DropoutSamples>();  // of the LoRA's branches
  std::unique_ptr<GradientBuckets> buckets;  // before the optimizer, which views into them
  std::unique_ptr<Shards> shards;            // all trained parameters, and which rank updates each
  std::unique_ptr<Optimizer> optimizer;      // of this rank's
  std::unique_ptr<WeightAverage> average;    // of this rank's; null without use_ema
  GradientSums gradient_sums;                // of the last step; only of shards
  std::unique_ptr<GradScaler> scaler;
  std::shared_ptr<StepGraphs> graphs;  // null without cuda_graphs
  LrSchedule schedule;
  std::vector<double> base_rates;  // of UNet and text encoders, before the curve
  torch::Tensor rates_by_update;   // [total_steps + 1, 2] float64 on the device: rates of the update after i others

  std::filesystem::path last_checkpoint;                                           // empty for none
  std::vector<Problem> warnings;                                                   // not said yet
  std::function<void(std::uint64_t step, std::int64_t micro)> before_micro_batch;  // for tests: may throw
  std::vector<std::string> notes;  // for the summary: what was decided without being asked

  bool is_lora() const { return config.run.method == "lora"; }
  bool trains_text() const { return config.run.train_text_encoder; }
  bool trains_text_at(std::uint64_t step) const {
    return trains_text() && step < static_cast<std::uint64_t>(text_steps);
  }
  bool has_prior() const { return config.data.with_prior_preservation; }
};

}  // namespace sdtune::train
