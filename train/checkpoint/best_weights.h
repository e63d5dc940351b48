// best/: the weights of the step that identity evaluation scored highest, kept beside its checkpoints until something
// better comes. Masters or averages only: a run resumes from a checkpoint, never from here.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "model/files/file_system.h"
#include "train/optim/trained_parameter.h"

namespace sdtune::train {

// Which weights they are: found at `step` by the evaluations of digest `exam`.
struct BestStep {
  std::string exam;
  std::int64_t step = 0;

  bool operator==(const BestStep&) const = default;
};

// weights: float32, one of each of `parameters`, in their order. The folder is replaced whole. Throws StorageError.
void write_best_weights(FileSystem& files, const std::filesystem::path& folder,
                        const std::vector<TrainedParameter>& parameters, const std::vector<torch::Tensor>& weights,
                        const BestStep& step);

// The weights of `step`, in the parameters' order. Throws CheckpointError where the folder holds no such weights, or
// others, or damaged ones.
std::vector<torch::Tensor> read_best_weights(const std::filesystem::path& folder,
                                             const std::vector<TrainedParameter>& parameters, const BestStep& step);

}  // namespace sdtune::train
