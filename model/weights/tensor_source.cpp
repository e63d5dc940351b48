#include "model/weights/tensor_source.h"

#include <array>
#include <set>
#include <utility>

#include "model/base/error.h"
#include "model/base/json.h"
#include "model/files/file_system.h"
#include "model/files/json_file.h"
#include "model/files/weight_format.h"

namespace sdtune::model {
namespace {

namespace fs = std::filesystem;

// A shard's name in an index file is not to be trusted: it must name a file beside the index, nothing else.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name.find('/') == std::string::npos && name.find('\\') == std::string::npos &&
         name.find('\0') == std::string::npos && name != "." && name != "..";
}

// Where only a pickle is there, its own refusal says how to convert it.
void refuse_pickles(const fs::path& folder, const std::string& stem) {
  for (const char* name : {"pytorch_model.bin", "model.ckpt", "diffusion_pytorch_model.bin"}) {
    for (const fs::path& path : {folder / name, folder / (stem + ".bin")}) {
      if (is_file(path)) refuse_other_formats(MappedFile(path).bytes(), path.string());
    }
  }
}

// A shard may be a link, as in the hub's cache, but only to a file of the same model: beside or below the folder of
// the whole model, or in the cache's folder of that model.
void check_shard(const fs::path& shard) {
  std::error_code error;
  const fs::path target = fs::canonical(shard, error);
  if (error) throw WeightError(shard.string(), "cannot read: " + error.message(), "a shard was not downloaded?");
  fs::path root = fs::canonical(shard.parent_path()).parent_path();
  if (root.parent_path().filename() == "snapshots") root = root.parent_path().parent_path();
  const fs::path inside = target.lexically_relative(root);
  if (inside.empty() || *inside.begin() == "..") {
    throw WeightError(shard.string(), "is a link that leaves the model's folder (to " + target.string() + ")");
  }
}

}  // namespace

TensorSource TensorSource::of_file(const fs::path& path, PageCache cache) {
  TensorSource source;
  source.where_ = path.string();
  source.add_file(path, cache);
  return source;
}

fs::path find_part_weights(const fs::path& folder, const std::string& stem) {
  for (const std::string& variant : {std::string(), std::string(".fp16")}) {
    const fs::path single = folder / (stem + variant + ".safetensors");
    // transformers and diffusers put the variant before or after "index".
    const std::array indices = {folder / (stem + ".safetensors.index" + variant + ".json"),
                                folder / (stem + variant + ".safetensors.index.json")};
    std::error_code error;
    if (fs::exists(single, error)) return single;
    for (const fs::path& index : indices) {
      if (fs::exists(index, error)) return index;
    }
  }
  refuse_pickles(folder, stem);
  throw WeightError((folder / (stem + ".safetensors")).string(), "is missing",
                    "a part of the model was not downloaded?");
}

TensorSource TensorSource::of_part(const fs::path& folder, const std::string& stem) {
  const fs::path weights = find_part_weights(folder, stem);
  if (weights.extension() == ".safetensors") return of_file(weights);
  TensorSource source;
  source.where_ = folder.string();
  source.add_shards(weights);
  return source;
}

TensorSource TensorSource::of_tensors(std::string where,
                                      const std::vector<std::pair<std::string, torch::Tensor>>& tensors) {
  TensorSource source;
  source.where_ = std::move(where);
  for (const auto& [name, tensor] : tensors) {
    const bool inserted = source.given_.emplace(name, tensor).second;
    TORCH_CHECK(inserted, "two tensors are called ", name);
  }
  return source;
}

void TensorSource::add_file(const fs::path& path, PageCache cache) {
  files_.emplace_back(path, cache);
  for (const auto& [name, entry] : files_.back().header().tensors) {
    const auto [position, inserted] = file_of_.emplace(name, files_.size() - 1);
    if (!inserted)
      throw WeightError(path.string() + ": " + name, "is also in " + files_[position->second].path().string());
  }
}

void TensorSource::add_shards(const fs::path& index) {
  const Json json = read_json(index);
  JsonObject object(json, index.string());
  const Json& map = object.raw("weight_map");
  if (!map.is_object()) object.fail("weight_map", "must be an object of tensor names and file names");
  std::set<std::string> shards;
  for (const auto& [name, shard] : map.items()) {
    if (!shard.is_string() || !is_plain_name(shard.get<std::string>())) {
      object.fail("weight_map: " + name, "must name a file beside the index (got " + shard.dump() + ")");
    }
    shards.insert(shard.get<std::string>());
  }
  for (const std::string& shard : shards) {
    check_shard(index.parent_path() / shard);
    add_file(index.parent_path() / shard);
  }
  for (const auto& [name, shard] : map.items()) {
    const auto found = file_of_.find(name);
    const fs::path path = index.parent_path() / shard.get<std::string>();
    if (found == file_of_.end() || files_[found->second].path() != path) {
      throw WeightError(index.string() + ": " + name,
                        "is not in the shard that the index names (" + shard.get<std::string>() + ")");
    }
  }
}

std::vector<fs::path> TensorSource::files() const {
  std::vector<fs::path> paths;
  for (const SafetensorsFile& file : files_) paths.push_back(file.path());
  return paths;
}

std::vector<std::string> TensorSource::names() const {
  std::vector<std::string> list;
  for (const auto& [name, file] : file_of_) list.push_back(name);
  for (const auto& [name, tensor] : given_) list.push_back(name);
  return list;
}

torch::Tensor TensorSource::tensor(const std::string& name) const {
  const auto given = given_.find(name);
  return given != given_.end() ? given->second : files_[file_of_.at(name)].tensor(name);
}

void TensorSource::release(const std::string& name) const {
  if (!given_.contains(name)) files_[file_of_.at(name)].release(name);
}

}  // namespace sdtune::model
