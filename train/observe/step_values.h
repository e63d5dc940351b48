// The numbers of a step under the names that metrics.jsonl and TensorBoard share.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "train/observe/observer.h"

namespace sdtune::train {

// What is plotted over the steps, in order: loss, loss_instance, loss_prior, lr, ... Values that the step does not have
// are left out.
std::vector<std::pair<std::string, double>> step_values(const StepEvent& event);

}  // namespace sdtune::train
