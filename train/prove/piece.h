// A piece of a part of `sdtune prove`, in a process of its own: its memory is measured alone, a crash is the failure of
// a part, and each rank has its own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "model/base/stop_flag.h"
#include "train/config/train_config.h"
#include "train/identity/portrait_reader_source.h"

namespace sdtune::train {

struct PieceRequest {
  std::string kind;              // kernels, steps or reference
  TrainConfig config;            // of steps and reference; kernels needs its device alone
  std::filesystem::path record;  // steps writes it; reference compares it with its own
  std::filesystem::path result;  // of kernels and reference: a JSON file with a list of checks
  std::int64_t count = 3;        // of steps
};

// A deliberate mistake, for tests: "step" makes every update of `steps` 5 % too large, "plan" makes what is planned a
// tenth. From the environment variable SDTUNE_PROVE_FAULT; "" without it. Throws ConfigError for another word, and
// where `device` is no CPU.
std::string planted_fault(const std::string& device);

// Does it. SDTUNE_PROVE_KERNELS names a library of our CUDA kernels compiled for the CPU (tests/gpu/host), which the
// piece `kernels` then runs on CPU tensors: for tests too. Throws the types of model/base/error.h.
void run_piece(const PieceRequest& request, const PortraitReaderSource& portrait_readers, const StopFlag& stop);

}  // namespace sdtune::train
