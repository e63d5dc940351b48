#include "train/config/optim_options.h"

#include <fmt/format.h>

#include <string>

namespace sdtune::train {

namespace {

// Below this a learning rate is meant for another optimizer: prodigy would hardly change the weights.
constexpr double kLeastProdigyRate = 0.1;
constexpr double kHighestRate = 10;
constexpr double kHighestBeta = 0.9999999;

void add_choice(TrainOptionGroup& group, OptimOptions& options) {
  group
      .add("optimizer", &options.optimizer, Resume::kByRule,
           "Optimizer: the state of adamw_8bit and adafactor is about a quarter of AdamW's, that of lion half of it; "
           "prodigy's is twice as large, and it estimates the step size itself: set learning_rate to 1.")
      .aliases({"optimizer_type"})
      .choices({"adamw", "adamw_8bit", "adafactor", "lion", "prodigy"});
  group.add("use_8bit_adam", &options.use_8bit_adam, Resume::kByRule, "The same as optimizer adamw_8bit.");
}

void add_rates(TrainOptionGroup& group, OptimOptions& options) {
  group.add("learning_rate", &options.learning_rate, Resume::kMustMatch, "Learning rate of the UNet.")
      .range(0, kHighestRate);
  group
      .add("text_encoder_lr", &options.text_encoder_lr, Resume::kMustMatch,
           "Learning rate of the text encoder; unset: learning_rate.")
      .range(0, kHighestRate);
  group
      .add("train_text_encoder_frac", &options.train_text_encoder_frac, Resume::kMustMatch,
           "Fraction of the steps, from the first one, in which the text encoder is trained; it is frozen afterwards. "
           "For faces a third is enough.")
      .above(0)
      .at_most(1);
  group.add("scale_lr", &options.scale_lr, Resume::kMustMatch,
            "Multiply the learning rates by gradient accumulation x batch size x ranks.");
}

void add_schedule(TrainOptionGroup& group, OptimOptions& options) {
  group
      .add("lr_scheduler", &options.lr_scheduler, Resume::kMustMatch,
           "Schedule of the learning rate over the optimizer steps.")
      .choices({"linear", "cosine", "cosine_with_restarts", "polynomial", "constant", "constant_with_warmup"});
  group
      .add("lr_warmup_steps", &options.lr_warmup_steps, Resume::kMustMatch,
           "Steps in which the learning rate rises from 0; constant has no warm-up.")
      .unit("steps")
      .at_least(0);
  group.add("lr_num_cycles", &options.lr_num_cycles, Resume::kMustMatch, "Hard restarts of cosine_with_restarts.")
      .at_least(1);
  group.add("lr_power", &options.lr_power, Resume::kMustMatch, "Exponent of polynomial.").at_least(0);
}

void add_adam(TrainOptionGroup& group, OptimOptions& options) {
  group.add("adam_beta1", &options.adam_beta1, Resume::kMustMatch, "Decay rate of the gradient's first moment.")
      .range(0, kHighestBeta);
  group.add("adam_beta2", &options.adam_beta2, Resume::kMustMatch, "Decay rate of the gradient's second moment.")
      .range(0, kHighestBeta);
  group
      .add("adam_weight_decay", &options.adam_weight_decay, Resume::kMustMatch,
           "Decoupled weight decay of every optimizer, multiplied by the learning rate.")
      .range(0, 100);
  group.add("adam_epsilon", &options.adam_epsilon, Resume::kMustMatch, "Added to the root of the second moment.")
      .above(0);
  group
      .add("max_grad_norm", &options.max_grad_norm, Resume::kMustMatch,
           "Largest norm of the gradient over all trainable parameters; a larger gradient is scaled down to it.")
      .above(0);
}

void add_lion(TrainOptionGroup& group, OptimOptions& options) {
  group
      .add("lion_beta1", &options.lion_beta1, Resume::kMustMatch,
           "Lion: weight of the momentum in the direction of a step.")
      .range(0, kHighestBeta);
  group.add("lion_beta2", &options.lion_beta2, Resume::kMustMatch, "Lion: decay rate of the momentum.")
      .range(0, kHighestBeta);
}

void add_prodigy(TrainOptionGroup& group, OptimOptions& options) {
  group
      .add("prodigy_beta3", &options.prodigy_beta3, Resume::kMustMatch,
           "Prodigy: decay rate of the step size estimate; unset: the root of adam_beta2.")
      .range(0, kHighestBeta);
  group.add("prodigy_use_bias_correction", &options.prodigy_use_bias_correction, Resume::kMustMatch,
            "Prodigy: bias correction of the moments, as in AdamW.");
  group.add("prodigy_safeguard_warmup", &options.prodigy_safeguard_warmup, Resume::kMustMatch,
            "Prodigy: leave the warm-up of the learning rate out of the step size estimate.");
}

void add_average(TrainOptionGroup group, OptimOptions& options) {
  group.add("use_ema", &options.use_ema, Resume::kMustMatch,
            "Keep an exponential moving average (EMA) of the weights, generate validation images with it and export "
            "it as the model; with the default ema_decay useful from about 1000 steps.");
  group
      .add("ema_decay", &options.ema_decay, Resume::kMustMatch,
           "Highest decay of the EMA; after n updates it is at most (1 + n) / (10 + n).")
      .range(0, 1);
  group.add("offload_ema", &options.offload_ema, Resume::kMayChange,
            "Keep the EMA in host memory instead of GPU memory; slower.");
}

}  // namespace

TrainFieldList OptimOptions::fields() {
  TrainFieldList list;
  TrainOptionGroup group(list, "Optimizer");
  add_choice(group, *this);
  add_rates(group, *this);
  add_schedule(group, *this);
  add_adam(group, *this);
  add_lion(group, *this);
  add_prodigy(group, *this);
  add_average({list, "Moving average of the weights"}, *this);
  return list;
}

std::vector<Problem> optimizer_problems(const OptimOptions& options) {
  std::vector<Problem> problems;
  if (options.use_8bit_adam && !options.optimizer.starts_with("adamw")) {
    problems.push_back({"use_8bit_adam", "contradicts optimizer (got " + options.optimizer + "; allowed: adamw)", ""});
  }
  if (options.chosen_optimizer() != "prodigy") return problems;
  if (options.learning_rate < kLeastProdigyRate) {
    problems.push_back({"learning_rate",
                        "multiplies the step size that prodigy estimates (got " +
                            fmt::format("{}", options.learning_rate) + "; allowed: 0.1 <= x <= 10)",
                        "usually 1"});
  }
  if (options.text_encoder_lr && *options.text_encoder_lr != options.learning_rate) {
    problems.push_back({"text_encoder_lr",
                        "differs from learning_rate, and prodigy estimates one step size for all parts (got " +
                            fmt::format("{}", *options.text_encoder_lr) + "; allowed: none)",
                        ""});
  }
  return problems;
}

}  // namespace sdtune::train
