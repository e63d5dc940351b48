// The tensors of an LDM single file, a safetensors file or a pickle, by their plain names.
#pragma once

#include <torch/types.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/weights/safetensors_file.h"

namespace sdtune::model {

inline constexpr const char* kUNetPrefix = "model.diffusion_model.";
inline constexpr const char* kVaePrefix = "first_stage_model.";
inline constexpr const char* kSd1TextPrefix = "cond_stage_model.transformer.";
inline constexpr const char* kSd2TextPrefix = "cond_stage_model.model.";
inline constexpr const char* kSdxlTextPrefix = "conditioner.embedders.0.transformer.";
inline constexpr const char* kSdxlText2Prefix = "conditioner.embedders.1.model.";
inline constexpr const char* kEmaPrefix = "model_ema.";

class LdmFile {
 public:
  // `module.` and `_orig_mod.`, which wrapped models leak, are taken out of the names, the prefix `text_model.` is put
  // back where a CLIP text encoder lacks it, and the text encoder of an SD 2.x that has SDXL's names gets its own.
  // Throws WeightError as SafetensorsFile does, and for two tensors whose plain names are the same.
  explicit LdmFile(const std::filesystem::path& path);
  // The tensors of a pickle (read_pickle_tensors), which has no metadata; `key` as there. The same errors.
  LdmFile(const std::filesystem::path& pickle, const std::string& key);

  std::string where() const { return path_.string(); }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  bool has(const std::string& name) const { return stored_.contains(name); }
  bool has_under(const std::string& prefix) const;
  // In alphabetic order, whole; all of them without a prefix.
  std::vector<std::string> names_under(const std::string& prefix) const;
  // As stored, a view of the file. Call contract: has(name).
  torch::Tensor tensor(const std::string& name) const;
  // Its name in the file, for errors. Call contract: has(name).
  const std::string& stored_name(const std::string& name) const { return stored_.at(name); }

 private:
  void add(const std::string& stored);
  void rename_only_text_encoder();

  std::filesystem::path path_;
  std::map<std::string, std::string> metadata_;
  std::optional<SafetensorsFile> file_;             // none: a pickle
  std::map<std::string, torch::Tensor> unpickled_;  // by stored name
  std::map<std::string, std::string> stored_;       // by plain name
};

// The EMA copy of a tensor of the UNet: the name without "model." and without dots, under "model_ema.".
std::string ema_name(const std::string& unet_tensor);

}  // namespace sdtune::model
