#include "train/plan/rental.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "train/config/preset_memory.h"

namespace sdtune::train {
namespace {

// Tensor cores multiply TF32 at half the rate of bfloat16 (data sheets of Ampere, Ada and Hopper).
constexpr double kTf32Slowdown = 2;

std::string gigabytes(std::int64_t bytes) {
  return fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9);
}

std::string why_not(const MemoryPhase& phase) {
  const auto largest =
      std::max_element(phase.parts.begin(), phase.parts.end(),
                       [](const MemoryPart& left, const MemoryPart& right) { return left.bytes < right.bytes; });
  return phase.name + " needs " + gigabytes(phase.bytes()) + ", of which " + largest->name + " " +
         gigabytes(largest->bytes);
}

const MeasuredStep* find_measured(const GpuOffer& offer, const PlannedRun& run) {
  const std::string folder = std::filesystem::path(run.model).filename().string();
  for (const MeasuredStep& step : offer.measured) {
    const bool is_model = step.model == run.model || step.model == folder;
    if (is_model && step.method == run.config.run.method && step.resolution == *run.config.data.resolution &&
        step.batch * run.ranks == run.batch && step.class_images == run.config.data.with_prior_preservation) {
      return &step;
    }
  }
  return nullptr;
}

// How many times as long as in bfloat16.
double slowdown_of(const PrecisionOptions& precision, const GpuTable& table) {
  if (precision.mixed_precision != "no") return 1;
  return precision.allow_tf32 ? std::min(kTf32Slowdown, table.float32_slowdown) : table.float32_slowdown;
}

double hours_of(const RunPlan& plan, const GpuTable& table, const GpuOffer& offer, bool& is_measured) {
  const double of_one = offer.tflops * 1e12 * offer.utilisation / slowdown_of(plan.run.config.precision, table);
  const double rate = of_one * static_cast<double>(plan.run.ranks);  // what ranks wait for each other is left out
  const auto steps = static_cast<double>(plan.run.total_steps);
  const MeasuredStep* measured = find_measured(offer, plan.run);
  is_measured = measured != nullptr;
  const double step =
      is_measured ? measured->seconds_per_step : std::max(plan.work.step / rate, table.least_seconds_per_step);
  return (steps * step + (plan.work.class_images + plan.work.evaluation_images + plan.work.encoding) / rate) / 3600;
}

}  // namespace

std::vector<Rental> price_run(const RunPlan& plan, const GpuTable& table) {
  std::vector<Rental> rentals;
  for (const GpuOffer& offer : table.offers) {
    Rental rental;
    rental.offer = offer;
    const std::int64_t usable = usable_bytes(offer.memory_bytes());
    const MemoryPhase& highest = plan.on_gpu.highest();
    rental.fits = highest.bytes() <= usable;
    if (!rental.fits) {
      rental.why_not = why_not(highest);
      const auto found = std::find_if(plan.savings.begin(), plan.savings.end(),
                                      [&](const Saving& saving) { return saving.gpu_bytes <= usable; });
      if (found != plan.savings.end()) rental.fits_with = found->options;
      const std::optional<PresetNeed> smaller = smaller_preset(plan.run.config);
      if (smaller && smaller->bytes <= usable) rental.fits_preset = smaller->preset;
    }
    rental.hours = hours_of(plan, table, offer, rental.is_measured);
    rental.price = rental.hours * offer.price_per_hour * static_cast<double>(plan.run.ranks);
    rental.price_per_epoch = rental.price / std::max(plan.run.epochs(), 1e-9);
    rentals.push_back(std::move(rental));
  }
  return rentals;
}

}  // namespace sdtune::train
