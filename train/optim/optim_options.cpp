#include "train/optim/optim_options.h"

#include <string>
#include <utility>

namespace sdtune::train {

namespace {

// Below this a rate is meant for another optimizer: prodigy would hardly move.
constexpr double kLeastProdigyRate = 0.1;

FieldInfo field(std::string name, std::string help) {
  return {.name = std::move(name), .help = std::move(help), .group = "Optimizer"};
}

FieldInfo rate_field(std::string name, std::string help) {
  FieldInfo info = field(std::move(name), std::move(help));
  info.min = 0;
  info.max = 10;
  return info;
}

FieldInfo beta_field(std::string name, std::string help) {
  FieldInfo info = field(std::move(name), std::move(help));
  info.min = 0;
  info.max = 0.9999999;
  return info;
}

void add_rate_fields(OptimOptions& options, FieldList& list) {
  FieldInfo share =
      field("train_text_encoder_frac",
            "Share of the steps, from the first, in which the text encoder is trained; after them it stays "
            "as it is. For faces the first third is enough.");
  share.min = 0;
  share.exclusive_min = true;
  share.max = 1;
  FieldInfo scheduler = field("lr_scheduler", "Curve of the learning rate over the optimizer steps.");
  scheduler.choices = {"linear", "cosine", "cosine_with_restarts", "polynomial", "constant", "constant_with_warmup"};
  FieldInfo warmup = field("lr_warmup_steps", "Steps in which the rate rises from 0; 'constant' has no warm-up.");
  warmup.unit = "steps";
  warmup.min = 0;
  FieldInfo cycles = field("lr_num_cycles", "Hard restarts of cosine_with_restarts.");
  cycles.min = 1;
  FieldInfo power = field("lr_power", "Exponent of polynomial.");
  power.min = 0;
  list.push_back({rate_field("learning_rate", "Learning rate of the UNet."), &options.learning_rate});
  list.push_back({rate_field("text_encoder_lr", "Learning rate of the text encoder; none: learning_rate."),
                  &options.text_encoder_lr});
  list.push_back({std::move(share), &options.train_text_encoder_frac});
  list.push_back({field("scale_lr", "Multiply the rates by accumulation x batch x ranks."), &options.scale_lr});
  list.push_back({std::move(scheduler), &options.lr_scheduler});
  list.push_back({std::move(warmup), &options.lr_warmup_steps});
  list.push_back({std::move(cycles), &options.lr_num_cycles});
  list.push_back({std::move(power), &options.lr_power});
}

void add_adam_fields(OptimOptions& options, FieldList& list) {
  FieldInfo decay = field("adam_weight_decay", "Decoupled weight decay of every optimizer, multiplied by the rate.");
  decay.min = 0;
  decay.max = 100;
  FieldInfo epsilon = field("adam_epsilon", "Added to the root of the second moment.");
  epsilon.min = 0;
  epsilon.exclusive_min = true;
  FieldInfo clip = field("max_grad_norm", "Largest norm of the gradient over all trained parameters.");
  clip.min = 0;
  clip.exclusive_min = true;
  list.push_back({beta_field("adam_beta1", "Decay of the mean of the gradient."), &options.adam_beta1});
  list.push_back({beta_field("adam_beta2", "Decay of the mean of its square."), &options.adam_beta2});
  list.push_back({std::move(decay), &options.adam_weight_decay});
  list.push_back({std::move(epsilon), &options.adam_epsilon});
  list.push_back({std::move(clip), &options.max_grad_norm});
}

void add_choice_fields(OptimOptions& options, FieldList& list) {
  FieldInfo optimizer =
      field("optimizer",
            "adamw_8bit and adafactor keep about a quarter of AdamW's state, lion half of it; prodigy "
            "keeps twice as much and finds the learning rate itself: set learning_rate to 1.");
  optimizer.aliases = {"optimizer_type"};
  optimizer.choices = {"adamw", "adamw_8bit", "adafactor", "lion", "prodigy"};
  list.push_back({std::move(optimizer), &options.optimizer});
  list.push_back({field("use_8bit_adam", "The same as optimizer adamw_8bit."), &options.use_8bit_adam});
}

void add_lion_fields(OptimOptions& options, FieldList& list) {
  list.push_back({beta_field("lion_beta1", "Lion: share of the mean of gradients in the direction of a step."),
                  &options.lion_beta1});
  list.push_back({beta_field("lion_beta2", "Lion: decay of that mean."), &options.lion_beta2});
}

void add_prodigy_fields(OptimOptions& options, FieldList& list) {
  list.push_back({beta_field("prodigy_beta3", "Prodigy: decay of its estimate; none: the root of adam_beta2."),
                  &options.prodigy_beta3});
  list.push_back({field("prodigy_use_bias_correction", "Prodigy: correct the moments for their start, as AdamW does."),
                  &options.prodigy_use_bias_correction});
  list.push_back({field("prodigy_safeguard_warmup", "Prodigy: keep a warm-up of the rate out of its estimate."),
                  &options.prodigy_safeguard_warmup});
}

void add_average_fields(OptimOptions& options, FieldList& list) {
  FieldInfo use =
      field("use_ema",
            "Keep an exponential moving average of the weights, draw validation pictures with it and export "
            "it as the model; worth it from about 1000 steps.");
  FieldInfo decay = field("ema_decay", "Its decay, reached by (1 + n) / (10 + n) of n earlier updates.");
  decay.min = 0;
  decay.max = 1;
  FieldInfo offload = field("offload_ema", "Keep it in the machine's memory instead of the GPU's; slower.");
  for (FieldInfo* info : {&use, &decay, &offload}) info->group = "Average of the weights";
  list.push_back({std::move(use), &options.use_ema});
  list.push_back({std::move(decay), &options.ema_decay});
  list.push_back({std::move(offload), &options.offload_ema});
}

}  // namespace

FieldList OptimOptions::fields() {
  FieldList list;
  add_choice_fields(*this, list);
  add_rate_fields(*this, list);
  add_adam_fields(*this, list);
  add_lion_fields(*this, list);
  add_prodigy_fields(*this, list);
  add_average_fields(*this, list);
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
                        "multiplies the step that prodigy finds (got " + std::to_string(options.learning_rate) +
                            "; allowed: 0.1 <= x <= 10)",
                        "1 is usual"});
  }
  if (options.text_encoder_lr && *options.text_encoder_lr != options.learning_rate) {
    problems.push_back({"text_encoder_lr",
                        "differs from learning_rate, and prodigy finds one step for all parts (got " +
                            std::to_string(*options.text_encoder_lr) + "; allowed: none)",
                        ""});
  }
  return problems;
}

}  // namespace sdtune::train
