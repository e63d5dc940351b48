#include <utility>

#include "train/optim/adafactor.h"
#include "train/optim/adamw.h"
#include "train/optim/adamw_8bit.h"
#include "train/optim/lion.h"
#include "train/optim/optimizer.h"
#include "train/optim/prodigy.h"

namespace sdtune::train {

std::unique_ptr<Optimizer> make_optimizer(std::vector<TrainedParameter> parameters, const OptimOptions& options,
                                          bool on_device, const OptimizerShard* shard) {
  const std::vector<Problem> problems = optimizer_problems(options);
  if (!problems.empty()) throw ConfigError(problems);
  const std::string name = options.chosen_optimizer();
  const bool reads_nothing = on_device || !parameters.front().weight.is_cpu();
  if (name == "adamw_8bit") return std::make_unique<AdamW8bit>(std::move(parameters), options);
  if (name == "adafactor") return std::make_unique<Adafactor>(std::move(parameters), options, reads_nothing);
  if (name == "lion") return std::make_unique<Lion>(std::move(parameters), options, reads_nothing);
  if (name == "prodigy") return std::make_unique<Prodigy>(std::move(parameters), options, reads_nothing, shard);
  TORCH_CHECK(name == "adamw", "optimizer ", name);
  return std::make_unique<AdamW>(std::move(parameters), options);
}

}  // namespace sdtune::train
