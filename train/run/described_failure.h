// Exceptions that are none of ours, as a run's records and exit code say them.
#pragma once

#include <c10/util/Exception.h>

#include <exception>

#include "model/base/error.h"
#include "train/config/train_config.h"

namespace sdtune::train {

// Called while a c10::Error is handled. Memory that ran out and a GPU that failed become our errors with their hints;
// everything else passes as the object that was thrown.
[[noreturn]] void rethrow_torch_error(const c10::Error& error, const TrainConfig& config);

// As last_error.json says it: with the words and exit code of the error line.
Error described(const std::exception& error, const TrainConfig& config);

}  // namespace sdtune::train
