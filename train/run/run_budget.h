// What a run may take: hours and money, over all of its attempts.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "train/config/rental_options.h"
#include "train/observe/observer.h"

namespace sdtune::train {

class RunBudget : public Observer {
 public:
  using Clock = std::function<double()>;  // s, steady

  // Counts from now on, and what earlier attempts took.
  RunBudget(const RentalOptions& options, std::optional<double> price_per_hour, double earlier_seconds, Clock clock);
  RunBudget(const RentalOptions& options, std::optional<double> price_per_hour, double earlier_seconds);

  // How long the last save took: time that the end of the run will need twice, for the checkpoint and the model.
  void on_checkpoint(const CheckpointEvent& event) override;

  double seconds() const;  // of the run so far
  // Whether the run must end now to be over within its budget; never without max_hours and max_cost.
  bool is_spent() const;
  // "max_hours is spent: 1.5 of 1.5 hours", of the option that ends first.
  std::string cause() const;

 private:
  std::optional<double> limit_seconds() const;
  bool ends_by_cost() const;

  RentalOptions options_;
  double price_per_hour_;  // 0 without max_cost
  double earlier_seconds_;
  Clock clock_;
  double start_;
  double save_seconds_ = 0;
};

}  // namespace sdtune::train
