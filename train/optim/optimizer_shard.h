// What an optimizer of some of the trained parameters must know of the others, which other ranks update.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace sdtune::train {

struct OptimizerShard {
  std::vector<std::size_t> own;           // this rank's parameters among all, ascending
  std::size_t total = 0;                  // how many there are
  std::vector<std::int64_t> rate_groups;  // of all
  // Adds up what the ranks have, in place. Each has filled in what it knows and left zeros elsewhere, so that every
  // rank then has the bits of the rank that knows it.
  std::function<void(const torch::Tensor&)> sum;
};

}  // namespace sdtune::train
