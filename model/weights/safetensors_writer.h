// Tensors to a safetensors file, whole or not at all.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/files/file_system.h"

namespace sdtune::model {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

// Writes the tensors in the order of their names, cast to `dtype` where it is given and the tensor is floating; one
// tensor at a time, so memory holds no second copy of the model. Same tensors, same bytes. The header's metadata says
// format: pt, which transformers demands. Throws StorageError; the file at `path` is then what it was.
void write_safetensors(FileSystem& files, const std::filesystem::path& path, NamedTensors tensors,
                       std::optional<torch::Dtype> dtype = std::nullopt,
                       std::map<std::string, std::string> metadata = {});

struct DeclaredTensor {
  std::string name;
  torch::Dtype dtype = torch::kFloat32;
  std::vector<std::int64_t> shape;
};

// The same of tensors that are not all there at once: declared in the order of their names, and read one after the
// other in that order, tensors[index] by read(index), just before each is written.
void write_safetensors(FileSystem& files, const std::filesystem::path& path, const std::vector<DeclaredTensor>& tensors,
                       const std::function<torch::Tensor(std::size_t)>& read,
                       std::map<std::string, std::string> metadata = {});

}  // namespace sdtune::model
