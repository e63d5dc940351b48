// The loop of one stage: steps, average, checkpoints, the clock. No maths of the model.
#pragma once

#include <torch/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "train/checkpoint/checkpoint_writer.h"
#include "train/dist/gradient_buckets.h"
#include "train/observe/append_file.h"
#include "train/optim/optimizer.h"
#include "train/optim/weight_average.h"
#include "train/portrait/pretrain/stage.h"
#include "train/run/train.h"

namespace sdtune::train::pretrain {

struct StagePlan {
  std::filesystem::path folder;  // of this stage: checkpoints/, metrics.jsonl
  std::int64_t total_steps = 0;
  std::int64_t warmup_steps = 0;
  double decay_share = 0.4;  // of total_steps, at their end, over which the rate falls to nothing
  double average_decay = 0.999;
  std::int64_t checkpoint_steps = 1000;
  std::int64_t report_steps = 20;     // between two lines of metrics.jsonl
  std::int64_t evaluation_steps = 0;  // between two calls of on_evaluation; 0: none
  OptimOptions optim;                 // learning_rate is the highest
  ResumeFingerprint identity;         // what must be equal to resume from a checkpoint
  torch::Device device = torch::kCPU;
  torch::Dtype dtype = torch::kFloat32;
  std::function<void(const std::string&)> on_line;  // what should be known of a resume; may be empty
};

struct StageProgress {
  std::string stage;
  std::int64_t step = 0, total_steps = 0;
  double loss = 0;  // mean since the last report of the steps whose loss was finite; NaN where none was
  double images_per_s = 0;
  double rate = 0;  // learning rate
};

enum class StageEnd { kFinished, kOutOfTime, kStopped };

struct StageLimits {
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  const StopFlag* stop = nullptr;
};

// What the learning rate is multiplied by in step `step` (0-based): a linear warm-up, a flat part, and a linear fall
// over the last share of the steps. Where the fall has not begun, nothing depends on total_steps.
double learning_rate_factor(const StagePlan& plan, std::int64_t step);

class StageLoop {
 public:
  // Resumes from the newest checkpoint in the folder, if there is one, also where total_steps grew meanwhile: the rate
  // is then that of the longer plan, which may be above the one that the shorter plan ended with. Without any
  // checkpoint a finished stage's result is taken (stage_result.h). Throws CheckpointError for a damaged one and
  // ConfigError where it is of another identity or of more than total_steps.
  StageLoop(Stage& stage, StagePlan plan, std::function<void(const StageProgress&)> report);

  // Called with averaged weights in place, after every evaluation_steps steps.
  void on_evaluation(std::function<void(std::int64_t step)> evaluate) { evaluate_ = std::move(evaluate); }

  // A step whose loss is not finite changes nothing; after so many in a row no later one is likely to be finite.
  static constexpr std::int64_t kMostNonFinite = 10;

  // Trains to total_steps, or saves and returns when the limits say so. Throws NonFiniteError, when it reports next,
  // after kMostNonFinite steps in a row without a finite loss.
  StageEnd run(const StageLimits& limits);

  std::int64_t step() const { return step_; }
  // The weights become their float32 averages permanently: the stage's result.
  void settle();

 private:
  void build_optimizer();
  void resume();
  void train_one_step();
  void count_loss(const torch::Tensor& loss);
  void report();
  void evaluate();
  void save();
  void write_result();

  Stage& stage_;
  StagePlan plan_;
  std::function<void(const StageProgress&)> report_;
  std::function<void(std::int64_t)> evaluate_;
  SingleProcess group_;
  std::unique_ptr<GradientBuckets> buckets_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<WeightAverage> average_;
  CheckpointWriter writer_;
  AppendFile metrics_;
  std::int64_t step_ = 0;
  std::int64_t attempt_ = 1;
  // Since the last report, on the device, which no step waits for.
  torch::Tensor loss_sum_;           // of finite losses
  torch::Tensor finite_count_;       // int64
  torch::Tensor non_finite_in_row_;  // int64: up to the last step
  torch::Tensor longest_row_;        // int64: the most that there were
  std::int64_t loss_count_ = 0;
  std::chrono::steady_clock::time_point last_report_;
};

}  // namespace sdtune::train::pretrain
