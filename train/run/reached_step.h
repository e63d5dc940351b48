// How far an attempt has come, for the end that an error brings: what throws does not know it.
#pragma once

#include <chrono>
#include <cstdint>

#include "train/observe/observer.h"

namespace sdtune::train {

class ReachedStep : public Observer {
 public:
  void on_start(const RunSummary& summary) override { step_ = summary.first_step; }
  void on_step(const StepEvent& event) override { step_ = event.step; }

  std::int64_t step() const { return step_; }  // optimizer steps done; 0 before the first is known
  double seconds() const {                     // since this was made
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::int64_t step_ = 0;
};

}  // namespace sdtune::train
