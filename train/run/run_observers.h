// The files that every run writes about itself.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "train/config/train_config.h"
#include "train/observe/observer.h"

namespace sdtune::train {

// The caller's observers and those of the run's own files, on the first rank; nothing on the others. Each of them is
// told of what another one warns of, so that the report has it, too.
class RunObservers {
 public:
  // `more` must outlive this and see every event, too. `started`: this attempt, s since 1970.
  RunObservers(const TrainConfig& config, const std::vector<Observer*>& callers, const std::vector<Observer*>& more,
               bool is_first, std::int64_t started);
  RunObservers(const RunObservers&) = delete;  // what is in it warns through it
  RunObservers& operator=(const RunObservers&) = delete;

  const std::vector<Observer*>& all() const { return all_; }

 private:
  void add(std::unique_ptr<Observer> observer);

  std::vector<std::unique_ptr<Observer>> own_;
  std::vector<Observer*> all_;
};

}  // namespace sdtune::train
