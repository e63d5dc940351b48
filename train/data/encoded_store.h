// Encoded images and captions on disk, from one run to the next. An entry is named by the hash of everything that its
// numbers depend on, so one that does not fit is not found rather than checked.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/files/file_system.h"
#include "model/pipeline/prompt_encoding.h"
#include "model/weights/safetensors_writer.h"

namespace sdtune::train {

class EncodedStore {
 public:
  using Warn = std::function<void(const Problem&)>;

  // `encoder` says what encodes: weights by hash, kind of device, version of the library. Where several processes share
  // a folder, only one may have `writes`.
  EncodedStore(FileSystem& files, std::filesystem::path folder, std::string encoder, bool writes, Warn warn);

  // The name of what is made of these inputs: bytes by their hash, and every setting.
  std::string key(const std::vector<std::string>& inputs) const;
  // The tensors, on the CPU. Unset where there are none, and with a warning where they are damaged.
  std::optional<model::NamedTensors> load(const std::string& key);
  // Whole or not at all. A disk that refuses costs a warning, once, and no run.
  void save(const std::string& key, const model::NamedTensors& tensors);

  std::int64_t found() const { return found_; }
  std::int64_t missed() const { return missed_; }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path file_of(const std::string& key) const { return folder_ / (key + ".safetensors"); }

  FileSystem& files_;
  std::filesystem::path folder_;
  std::string encoder_;
  bool writes_;
  Warn warn_;
  std::int64_t found_ = 0, missed_ = 0;
};

// `encode` for captions, each row of [B, 77] looked up first. Rows that are not there are encoded together and kept.
model::PromptEmbeds encode_with_store(EncodedStore& store, const model::PromptIds& ids,
                                      const std::function<model::PromptEmbeds(const model::PromptIds&)>& encode);

}  // namespace sdtune::train
