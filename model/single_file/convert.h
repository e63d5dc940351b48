// A model from one layout to the other, read again and compared before it is called done.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/files/file_system.h"
#include "model/single_file/single_file_read.h"

namespace sdtune::model {

struct ConvertRequest {
  std::filesystem::path model;   // a diffusers folder, or an LDM single file
  std::filesystem::path output;  // the other one; what is there is replaced
  SingleFileOptions reading;     // of a single file; for both directions `dtype` is that of what is written
  bool dry_run = false;          // names and shapes are compared, ranges where `dtype` is given; nothing is written
};

struct ConvertReport {
  ModelFamily family = ModelFamily::kSd1;
  PredictionChoice prediction;
  torch::Dtype dtype = torch::kFloat32;
  std::int64_t matched = 0;          // tensors that the configs ask for and that are there: all
  std::vector<std::string> ignored;  // names of stored tensors that carry nothing
};

// `request.reading.names_only` is set by `dry_run`. Throws WeightError, ConfigError and StorageError as reading and
// writing do; an output that was there is then what it was.
ConvertReport convert_to_folder(FileSystem& files, const ConvertRequest& request);
ConvertReport convert_to_single_file(FileSystem& files, const ConvertRequest& request);

// The dtype that holds every weight of a diffusers folder exactly. Throws WeightError for a folder that is none,
// and for float64 numbers.
torch::Dtype dtype_of_folder(const std::filesystem::path& folder);

}  // namespace sdtune::model
