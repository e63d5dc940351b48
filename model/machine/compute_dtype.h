// The number format of a computation, from what was asked for and where it runs.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>

namespace sdtune::model {

enum class ComputeUse : std::uint8_t { kSample, kTrain };

// `default`: bfloat16 on a GPU from compute capability 8.0, float16 on an older one, float32 on a CPU. `auto`: the same
// on a GPU, and on a CPU what the table of processors says is fastest (processor_table.h), float32 for a kind that it
// does not know. Else the format by its name. Throws ConfigError naming `where` for another word, and as
// find_processor.
torch::Dtype choose_dtype(const std::string& asked, torch::Device device, ComputeUse use, const std::string& where);

// Where `auto` was asked for on a CPU of a kind that the table does not know: that it is float32, which may not be the
// fastest, and what to do. Else "". Throws as find_processor.
std::string unknown_processor_note(const std::string& asked, torch::Device device);

}  // namespace sdtune::model
