// Two records of the same steps, number by number, against what their number formats may differ by.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "train/prove/part_result.h"
#include "train/prove/plain_steps.h"
#include "train/prove/step_record.h"

namespace sdtune::train {

// |got - want| / |want| in double; infinite where it is not finite.
double relative_difference(const torch::Tensor& got, const torch::Tensor& want);

// The worst relative difference of losses and norms, and those of all gradients and all changes as one vector each.
// `dtype`: what `record` was computed in ("float32", ...); `reference` is in float32. In half precision the weights'
// change has no bar: AdamW's first steps have the size of the rate whatever the gradient's, so that a gradient near
// zero that rounds to the other sign turns a whole step around.
std::vector<Check> compare_records(const StepRecord& record, const StepRecord& reference, const std::string& dtype);

// What a record says of itself: the update against AdamW's statement, the norm against its gradients.
std::vector<Check> check_update(const StepRecord& record);

// The inputs against those of the CPU in float32.
std::vector<Check> check_inputs(const InputErrors& errors, const std::string& dtype);

}  // namespace sdtune::train
