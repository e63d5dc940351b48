#include "train/optim/optim_options.h"

#include <utility>

namespace sdtune::train {

namespace {

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
  list.push_back({field("scale_lr", "Multiply the rates by accumulation x batch x ranks."), &options.scale_lr});
  list.push_back({std::move(scheduler), &options.lr_scheduler});
  list.push_back({std::move(warmup), &options.lr_warmup_steps});
  list.push_back({std::move(cycles), &options.lr_num_cycles});
  list.push_back({std::move(power), &options.lr_power});
}

void add_adam_fields(OptimOptions& options, FieldList& list) {
  FieldInfo decay = field("adam_weight_decay", "Decoupled weight decay, multiplied by the learning rate.");
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
  list.push_back({field("use_8bit_adam", "Optimizer moments in 8 bits; not supported yet."), &options.use_8bit_adam});
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
  add_rate_fields(*this, list);
  add_adam_fields(*this, list);
  add_average_fields(*this, list);
  return list;
}

}  // namespace sdtune::train
