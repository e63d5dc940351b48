#include "train/plan/pass_scaling.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "train/plan/sizes_only.h"
#include "train/run/memory_use.h"

namespace sdtune::train {
namespace {

constexpr double kQuickFlops = 2e11;  // seconds on a laptop
constexpr int kWatchedPasses = 3;
constexpr std::int64_t kSmallSide = 16;  // latent cells of the smaller trial

// A quantity that is constant + by_sample x samples + by_cell x samples x cells, solved from three trials: one sample
// of two sizes, and two samples of the smaller.
class Line {
 public:
  Line(double small, double large, double two, double small_cells, double large_cells)
      : by_cell_((large - small) / (large_cells - small_cells)),
        by_sample_(two - small - by_cell_ * small_cells),
        constant_(small - by_sample_ - by_cell_ * small_cells) {}
  double at(const PassShape& shape) const {
    const auto batch = static_cast<double>(shape.batch);
    return constant_ + batch * (by_sample_ + by_cell_ * static_cast<double>(shape.cells()));
  }

 private:
  double by_cell_, by_sample_, constant_;
};

std::int64_t bytes_at(std::int64_t small, std::int64_t large, std::int64_t two, const std::array<PassShape, 3>& trials,
                      const PassShape& shape) {
  const Line line(static_cast<double>(small), static_cast<double>(large), static_cast<double>(two),
                  static_cast<double>(trials[0].cells()), static_cast<double>(trials[1].cells()));
  return std::llround(std::max(0.0, line.at(shape)));
}

double attention_at(const PassCost& large, const PassShape& trial, const PassShape& shape) {
  const double growth = static_cast<double>(shape.cells()) / static_cast<double>(trial.cells());
  return large.attention_flops * growth * growth * static_cast<double>(shape.batch);
}

bool is_quick(const PassCost& small, const PassShape& trial, const PassShape& shape) {
  const double cells = static_cast<double>(trial.batch * trial.cells());
  const double growth = static_cast<double>(shape.batch * shape.cells()) / cells;
  return growth * (small.flops + small.attention_flops + small.text_flops) <= kQuickFlops;
}

}  // namespace

ScaledPass::ScaledPass(std::int64_t step, QuickPass quick, TracePass trace) : quick_(quick), trace_(std::move(trace)) {
  const std::int64_t side = (kSmallSide + step - 1) / step * step;
  trials_ = {{{1, side, side}, {1, 2 * side, 2 * side}, {2, side, side}}};
}

// Gaps show when blocks come and go again, so the process is watched in further passes.
PassCost ScaledPass::quick_at(const PassShape& shape) const {
  if (quick_ == QuickPass::kSizes) return sizes_at(shape);
  PassCost cost = trace_(shape);
  if (quick_ == QuickPass::kComputed) return cost;
  give_back_memory();
  const std::int64_t before = resident_bytes();
  const PeakMeter meter;
  for (int i = 0; i < kWatchedPasses; ++i) trace_(shape);
  cost.resident_bytes = std::max<std::int64_t>(0, meter.peak_bytes() - before);
  return cost;
}

PassCost ScaledPass::sizes_at(const PassShape& shape) const {
  const SizesOnlyScope sizes_only;
  return trace_(shape);
}

void ScaledPass::trace_trials(std::size_t count) {
  while (costs_.size() < count) costs_.push_back(sizes_at(trials_[costs_.size()]));
}

PassCost ScaledPass::at(const PassShape& shape) {
  trace_trials(1);
  if (is_quick(costs_[0], trials_[0], shape)) return quick_at(shape);
  trace_trials(trials_.size());
  const PassCost &small = costs_[0], &large = costs_[1], &two = costs_[2];
  PassCost cost;
  for (std::size_t i = 0; i < small.pieces.size(); ++i) {
    const PassPiece &a = small.pieces[i], &b = large.pieces.at(i), &c = two.pieces.at(i);
    cost.pieces.push_back({a.name, bytes_at(a.peak_bytes, b.peak_bytes, c.peak_bytes, trials_, shape),
                           bytes_at(a.end_bytes, b.end_bytes, c.end_bytes, trials_, shape)});
  }
  const auto scaled = [&](double PassCost::*part) {
    return Line(small.*part, large.*part, two.*part, static_cast<double>(trials_[0].cells()),
                static_cast<double>(trials_[1].cells()))
        .at(shape);
  };
  cost.flops = scaled(&PassCost::flops);
  cost.text_flops = scaled(&PassCost::text_flops);
  cost.attention_flops = attention_at(large, trials_[1], shape);
  return cost;
}

}  // namespace sdtune::train
