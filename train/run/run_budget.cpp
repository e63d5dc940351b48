#include "train/run/run_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace sdtune::train {

namespace {

constexpr double kHour = 3600;  // s

double budget_clock() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

RunBudget::RunBudget(const RentalOptions& options, std::optional<double> price_per_hour, double earlier_seconds,
                     Clock clock)
    : options_(options),
      price_per_hour_(price_per_hour.value_or(0)),
      earlier_seconds_(earlier_seconds),
      clock_(std::move(clock)),
      start_(clock_()) {}

RunBudget::RunBudget(const RentalOptions& options, std::optional<double> price_per_hour, double earlier_seconds)
    : RunBudget(options, price_per_hour, earlier_seconds, budget_clock) {}

void RunBudget::on_checkpoint(const CheckpointEvent& event) {
  save_seconds_ = std::max(save_seconds_, event.seconds);
}

double RunBudget::seconds() const {
  return earlier_seconds_ + clock_() - start_;
}

bool RunBudget::ends_by_cost() const {
  if (!options_.max_cost) return false;
  return !options_.max_hours || *options_.max_cost < *options_.max_hours * price_per_hour_;
}

std::optional<double> RunBudget::limit_seconds() const {
  if (ends_by_cost()) return *options_.max_cost / price_per_hour_ * kHour;
  if (options_.max_hours) return *options_.max_hours * kHour;
  return std::nullopt;
}

bool RunBudget::is_spent() const {
  const std::optional<double> limit = limit_seconds();
  return limit && seconds() + 2 * save_seconds_ >= *limit;
}

std::string RunBudget::cause() const {
  const double hours = seconds() / kHour;
  if (ends_by_cost()) {
    return fmt::format("max_cost is spent: {:.3g} of {:g} at {:g} an hour", hours * price_per_hour_, *options_.max_cost,
                       price_per_hour_);
  }
  return fmt::format("max_hours is spent: {:.3g} of {:g} hours", hours, options_.max_hours.value_or(0));
}

}  // namespace sdtune::train
