// The tensors of a file that torch.save wrote, without copying or running anything.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "model/weights/safetensors_writer.h"

namespace sdtune::model {

struct PickleTensors {
  NamedTensors tensors;  // in the order of their names: read-only views of the file, strided as they are there
  std::string key;       // the entry of the file that holds them; empty: the file itself
  std::vector<std::string> left_out;  // names beside them that are no tensors
};

// Throws WeightError: see parse_torch_archive. The file stays mapped as long as any tensor of it lives.
PickleTensors read_pickle_tensors(const std::filesystem::path& path, const std::string& key);

}  // namespace sdtune::model
