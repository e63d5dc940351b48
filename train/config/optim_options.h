// The options of the optimizer and its learning rate.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "train/config/train_option_group.h"

namespace sdtune::train {

struct OptimOptions {
  std::string optimizer = "adamw";  // adamw, adamw_8bit, adafactor, lion, prodigy
  double learning_rate = 5e-6;
  std::optional<double> text_encoder_lr;  // unset: learning_rate
  double train_text_encoder_frac = 1.0;   // of the steps
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
  bool use_8bit_adam = false;  // diffusers' name of adamw_8bit
  double lion_beta1 = 0.9;
  double lion_beta2 = 0.99;
  std::optional<double> prodigy_beta3;  // unset: the root of adam_beta2
  bool prodigy_use_bias_correction = true;
  bool prodigy_safeguard_warmup = true;
  bool use_ema = false;
  double ema_decay = 0.9999;
  bool offload_ema = false;

  TrainFieldList fields();
  // The optimizer's name, by whichever option it was chosen.
  std::string chosen_optimizer() const { return use_8bit_adam ? "adamw_8bit" : optimizer; }
};

// Options of the optimizer that contradict each other, or that the chosen one cannot do with; empty: none.
std::vector<Problem> optimizer_problems(const OptimOptions& options);

}  // namespace sdtune::train
