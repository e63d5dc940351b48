// The options of the optimizer and its learning rate.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/base/field.h"

namespace sdtune::train {

struct OptimOptions {
  double learning_rate = 5e-6;
  std::optional<double> text_encoder_lr;  // unset: learning_rate
  bool scale_lr = false;
  std::string lr_scheduler = "constant";
  std::int64_t lr_warmup_steps = 0;  // optimizer steps
  std::int64_t lr_num_cycles = 1;
  double lr_power = 1.0;
  double adam_beta1 = 0.9;
  double adam_beta2 = 0.999;
  double adam_weight_decay = 1e-2;
  double adam_epsilon = 1e-8;
  double max_grad_norm = 1.0;
  bool use_8bit_adam = false;
  bool use_ema = false;
  double ema_decay = 0.9999;
  bool offload_ema = false;

  FieldList fields();
};

}  // namespace sdtune::train
