// What a run would take on the GPUs of a table: whether it fits, how long, for how much.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/plan/gpu_table.h"
#include "train/plan/run_plan.h"

namespace sdtune::train {

struct Rental {
  GpuOffer offer;
  bool fits = false;
  // Where it does not: the phase and its largest part; and what would make it fit, empty for nothing that was tried.
  std::string why_not;
  std::string fits_with;
  std::string fits_preset;  // the preset of a smaller GPU that does it, empty for none
  double hours = 0;
  bool is_measured = false;  // by a step of the table, else estimated from the operations
  double price = 0;          // of the whole run
  double price_per_epoch = 0;
};

std::vector<Rental> price_run(const RunPlan& plan, const GpuTable& table);

}  // namespace sdtune::train
