// One lookup over the weights of a model part, however they are spread over files.
#pragma once

#include <torch/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/weights/safetensors_file.h"

namespace sdtune::model {

// The file of a part by which its weights are found: `stem`.safetensors, or `stem`.safetensors.index.json, which lists
// shards, or the .fp16 variant of either. Throws WeightError naming what is missing, and how to convert where only
// pickles are there.
std::filesystem::path find_part_weights(const std::filesystem::path& folder, const std::string& stem);

class TensorSource {
 public:
  // One safetensors file. With kDrop what is released leaves the page cache too.
  static TensorSource of_file(const std::filesystem::path& path, PageCache cache = PageCache::kKeep);
  // A part of a diffusers folder (unet/, vae/, text_encoder/), see find_part_weights. Shards must be plain file names
  // inside the folder. Throws WeightError.
  static TensorSource of_part(const std::filesystem::path& folder, const std::string& stem);
  // Tensors under names of the caller's choice, each once: views of a file of another layout. `where` goes into errors.
  static TensorSource of_tensors(std::string where, const std::vector<std::pair<std::string, torch::Tensor>>& tensors);

  std::vector<std::string> names() const;
  bool has(const std::string& name) const { return file_of_.contains(name) || given_.contains(name); }
  torch::Tensor tensor(const std::string& name) const;  // as stored; call contract: has(name)
  // Takes it out of memory, unless it was given as a tensor; the same contract.
  void release(const std::string& name) const;
  // The file or folder, for errors.
  const std::string& where() const { return where_; }
  // The files that hold the tensors: one, or the shards.
  std::vector<std::filesystem::path> files() const;

 private:
  TensorSource() = default;
  void add_file(const std::filesystem::path& path, PageCache cache = PageCache::kKeep);
  void add_shards(const std::filesystem::path& index);

  std::string where_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, std::size_t> file_of_;
  std::map<std::string, torch::Tensor> given_;
};

}  // namespace sdtune::model
