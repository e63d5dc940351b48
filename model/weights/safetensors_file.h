// The tensors of one safetensors file, by name, without copying them.
#pragma once

#include <torch/types.h>

#include <filesystem>
#include <memory>
#include <string>

#include "model/files/mapped_file.h"
#include "model/files/safetensors_header.h"

namespace sdtune::model {

// The mapping lives as long as any tensor taken from it.
class SafetensorsFile {
 public:
  // Throws WeightError: see parse_safetensors_header.
  explicit SafetensorsFile(const std::filesystem::path& path, PageCache cache = PageCache::kKeep);

  const SafetensorsHeader& header() const { return header_; }
  const std::filesystem::path& path() const { return file_->path(); }
  bool has(const std::string& name) const { return header_.tensors.contains(name); }
  // The tensor as stored: its dtype and shape, a read-only view of the file. Call contract: has(name).
  torch::Tensor tensor(const std::string& name) const;
  // Takes the tensor's bytes out of memory; reading it again reads the file. Call contract: has(name).
  void release(const std::string& name) const;

 private:
  std::shared_ptr<const MappedFile> file_;
  SafetensorsHeader header_;
};

// F32 <-> float32 and so on.
torch::Dtype dtype_of_safetensors(const std::string& name);
std::string safetensors_name(torch::Dtype dtype);

}  // namespace sdtune::model
