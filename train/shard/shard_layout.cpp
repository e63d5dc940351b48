#include "train/shard/shard_layout.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "model/base/error.h"
#include "train/optim/state_size.h"

namespace sdtune::train {

namespace {

constexpr std::int64_t kFloat = 4;  // bytes

std::int64_t count_of(c10::IntArrayRef shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

// Shares of the whole that a rank has, or a parameter takes.
struct Load {
  double gradient = 0, states = 0;

  double larger() const { return std::max(gradient, states); }
  Load with(const Load& other) const { return {gradient + other.gradient, states + other.states}; }
};

std::vector<Load> loads_of(const std::vector<ShardCost>& costs) {
  double gradients = 0, states = 0;
  for (const ShardCost& cost : costs) {
    gradients += static_cast<double>(cost.gradient);
    states += static_cast<double>(cost.states);
  }
  std::vector<Load> loads;
  for (const ShardCost& cost : costs) {
    loads.push_back({gradients > 0 ? static_cast<double>(cost.gradient) / gradients : 0,
                     states > 0 ? static_cast<double>(cost.states) / states : 0});
  }
  return loads;
}

}  // namespace

std::int64_t kept_bytes(const OptimOptions& options, c10::IntArrayRef shape, bool has_master) {
  const std::int64_t copies = (has_master ? 1 : 0) + (options.use_ema ? 1 : 0);
  return optimizer_state_bytes(options, shape) + copies * kFloat * count_of(shape);
}

std::vector<ShardCost> shard_costs(const OptimOptions& options, const std::vector<ModuleParameter>& trained,
                                   bool have_masters) {
  std::vector<ShardCost> costs;
  for (const ModuleParameter& parameter : trained) {
    const c10::IntArrayRef shape = parameter.weight.sizes();
    costs.push_back({parameter.name, kFloat * count_of(shape), kept_bytes(options, shape, have_masters)});
  }
  return costs;
}

std::vector<std::int64_t> assign_owners(const std::vector<ShardCost>& costs, std::int64_t ranks) {
  if (static_cast<std::int64_t>(costs.size()) < ranks) {
    throw ConfigError("shard",
                      "gives each rank whole parameters, and " + std::to_string(costs.size()) + " are trained by " +
                          std::to_string(ranks) + " ranks",
                      "shard: none, or fewer ranks");
  }
  const std::vector<Load> loads = loads_of(costs);
  std::vector<std::size_t> order(costs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
    const double a = loads[left].larger(), b = loads[right].larger();
    return a != b ? a > b : costs[left].name < costs[right].name;
  });
  std::vector<std::int64_t> owners(costs.size());
  std::vector<Load> of_ranks(static_cast<std::size_t>(ranks));
  for (const std::size_t index : order) {
    const auto least = std::min_element(of_ranks.begin(), of_ranks.end(), [&](const Load& left, const Load& right) {
      return left.with(loads[index]).larger() < right.with(loads[index]).larger();
    });
    *least = least->with(loads[index]);
    owners[index] = least - of_ranks.begin();
  }
  return owners;
}

}  // namespace sdtune::train
