// Which rank updates which parameter.
#pragma once

#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <string>
#include <vector>

#include "train/config/optim_options.h"
#include "train/parameters/trainable_parameters.h"

namespace sdtune::train {

// What a parameter takes, in bytes.
struct ShardCost {
  std::string name;
  std::int64_t gradient = 0;
  std::int64_t states = 0;  // and master and average
};

// What the rank that updates a parameter of that shape keeps of it, in bytes: states, and float32 copies as master
// (where the weight itself is not float32) and average.
std::int64_t kept_bytes(const OptimOptions& options, c10::IntArrayRef shape, bool has_master);
std::vector<ShardCost> shard_costs(const OptimOptions& options, const std::vector<ModuleParameter>& trained,
                                   bool have_masters);

// The owner of each parameter, 0 to ranks - 1: whole parameters, the largest first, each to the rank whose gradients
// and states are then the fewest (Graham, "Bounds on multiprocessing timing anomalies", 1969: longest processing time
// first). A function of names and sizes alone, so that ranks need not speak about it. Throws ConfigError where there
// are fewer parameters than ranks.
std::vector<std::int64_t> assign_owners(const std::vector<ShardCost>& costs, std::int64_t ranks);

}  // namespace sdtune::train
