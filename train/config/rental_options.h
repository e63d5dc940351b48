// The options of a run on a rented machine: what it may cost, when it must go, what follows it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "train/config/train_option_group.h"

namespace sdtune::train {

struct RentalOptions {
  std::optional<double> max_hours;  // of all attempts
  std::optional<double> max_cost;   // in the currency of price_per_hour
  std::string on_finish;            // a shell command; empty: none
  std::string preemption = "none";  // whose notices are watched
  std::string preemption_address;   // HOST[:PORT] of the metadata service; empty: the cloud's own
  std::string notify;               // address of a webhook; empty: none

  TrainFieldList fields();
};

// What they lack, where `price_per_hour` is the machine's.
std::vector<Problem> rental_problems(const RentalOptions& options, std::optional<double> price_per_hour);

}  // namespace sdtune::train
