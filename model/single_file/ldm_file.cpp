#include "model/single_file/ldm_file.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "model/base/error.h"
#include "model/single_file/pickle_tensors.h"
#include "model/weights/key_map.h"

namespace sdtune::model {
namespace {

std::string plain_name(const std::string& stored) {
  const std::string name = our_key(KeyFamily::kUNet, stored);  // which only strips wrappers
  for (const std::string_view prefix : {kSd1TextPrefix, kSdxlTextPrefix}) {
    if (!name.starts_with(prefix)) continue;
    const std::string key = our_key(KeyFamily::kTextEncoder, name.substr(prefix.size()));
    return key.empty() ? name : std::string(prefix) + key;
  }
  return name;
}

// SDXL's names for its only text encoder: an SD 2.x of later code, as SD Turbo is published, or SDXL's refiner.
constexpr const char* kOnlyTextPrefix = "conditioner.embedders.0.model.";
constexpr const char* kPooledInput = "model.diffusion_model.label_emb.";  // of SDXL and its refiner alone

}  // namespace

LdmFile::LdmFile(const std::filesystem::path& path) : path_(path), file_(path) {
  metadata_ = file_->header().metadata;
  for (const auto& [stored, entry] : file_->header().tensors) add(stored);
  rename_only_text_encoder();
}

LdmFile::LdmFile(const std::filesystem::path& pickle, const std::string& key) : path_(pickle) {
  for (auto& [stored, tensor] : read_pickle_tensors(pickle, key).tensors) {
    add(stored);
    unpickled_.emplace(stored, std::move(tensor));
  }
  rename_only_text_encoder();
}

void LdmFile::rename_only_text_encoder() {
  if (has_under(kSdxlText2Prefix) || has_under(kPooledInput)) return;
  for (const std::string& name : names_under(kOnlyTextPrefix)) {
    auto entry = stored_.extract(name);
    entry.key() = kSd2TextPrefix + name.substr(std::string_view(kOnlyTextPrefix).size());
    const auto inserted = stored_.insert(std::move(entry));
    if (!inserted.inserted) {
      throw WeightError(where() + ": " + inserted.node.mapped(),
                        "is the same tensor as " + inserted.position->second + " by its name");
    }
  }
}

void LdmFile::add(const std::string& stored) {
  const auto [position, inserted] = stored_.emplace(plain_name(stored), stored);
  if (!inserted) {
    throw WeightError(where() + ": " + stored, "is the same tensor as " + position->second + " by its name");
  }
}

torch::Tensor LdmFile::tensor(const std::string& name) const {
  const std::string& stored = stored_.at(name);
  return file_ ? file_->tensor(stored) : unpickled_.at(stored);
}

bool LdmFile::has_under(const std::string& prefix) const {
  const auto first = stored_.lower_bound(prefix);
  return first != stored_.end() && first->first.starts_with(prefix);
}

std::vector<std::string> LdmFile::names_under(const std::string& prefix) const {
  std::vector<std::string> names;
  for (auto at = stored_.lower_bound(prefix); at != stored_.end() && at->first.starts_with(prefix); ++at) {
    names.push_back(at->first);
  }
  return names;
}

std::string ema_name(const std::string& unet_tensor) {
  std::string name = unet_tensor.substr(std::string_view("model.").size());
  std::erase(name, '.');
  return kEmaPrefix + name;
}

}  // namespace sdtune::model
