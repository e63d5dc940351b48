#include "train/data/encoded_store.h"

#include <algorithm>
#include <utility>

#include "model/base/json.h"
#include "model/files/sha256.h"
#include "model/weights/safetensors_file.h"

namespace sdtune::train {

namespace {

constexpr const char* kFormat = "1";  // what an entry holds; another number makes all earlier ones unknown
constexpr const char* kContent = "sha256";

std::span<const std::byte> bytes_of(const torch::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}

// Of names, shapes and bytes, in the order of the names.
std::string content_hash(model::NamedTensors tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  Sha256 hash;
  for (const auto& [name, tensor] : tensors) {
    const std::string head = name + " " + Json(tensor.sizes().vec()).dump() + "\n";
    hash.update(std::as_bytes(std::span(head)));
    hash.update(bytes_of(tensor));
  }
  return hash.hex_digest();
}

model::NamedTensors read_checked(const std::filesystem::path& path) {
  const model::SafetensorsFile file(path);
  model::NamedTensors tensors;
  for (const auto& [name, entry] : file.header().tensors) tensors.emplace_back(name, file.tensor(name).clone());
  const auto listed = file.header().metadata.find(kContent);
  if (listed == file.header().metadata.end() || listed->second != content_hash(tensors)) {
    throw WeightError(path.string(), "its numbers are not those that were written");
  }
  return tensors;
}

torch::Tensor named(const model::NamedTensors& tensors, const std::string& name) {
  for (const auto& [known, tensor] : tensors) {
    if (known == name) return tensor;
  }
  return torch::Tensor();
}

torch::Tensor row_of(const torch::Tensor& table, std::int64_t row) {
  return table.defined() ? table.slice(0, row, row + 1) : torch::Tensor();
}

std::string row_text(const torch::Tensor& ids, std::int64_t row) {
  if (!ids.defined()) return "";
  const torch::Tensor numbers = ids[row].to(torch::kCPU, torch::kInt64).contiguous();
  return sha256_hex({reinterpret_cast<const char*>(numbers.const_data_ptr()), numbers.nbytes()});
}

}  // namespace

EncodedStore::EncodedStore(FileSystem& files, std::filesystem::path folder, std::string encoder, bool writes, Warn warn)
    : files_(files),
      folder_(std::move(folder)),
      encoder_(std::move(encoder)),
      writes_(writes),
      warn_(std::move(warn)) {}

std::string EncodedStore::key(const std::vector<std::string>& inputs) const {
  return sha256_hex(Json{kFormat, encoder_, inputs}.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::optional<model::NamedTensors> EncodedStore::load(const std::string& key) {
  std::error_code status;
  const std::filesystem::path path = file_of(key);
  if (std::filesystem::exists(path, status)) {
    try {
      model::NamedTensors tensors = read_checked(path);
      ++found_;
      return tensors;
    } catch (const Error& error) {
      warn_({path.string(), "this cache entry is damaged, and is computed anew", error.problems().front().what});
    }
  }
  ++missed_;
  return std::nullopt;
}

void EncodedStore::save(const std::string& key, const model::NamedTensors& tensors) {
  if (!writes_) return;
  model::NamedTensors stored;
  for (const auto& [name, tensor] : tensors) stored.emplace_back(name, tensor.detach().to(torch::kCPU).contiguous());
  try {
    files_.create_directories(folder_);
    model::write_safetensors(files_, file_of(key), stored, std::nullopt, {{kContent, content_hash(stored)}});
  } catch (const StorageError& error) {
    writes_ = false;
    warn_({folder_.string(), "nothing more is kept in the cache: " + error.problems().front().what, ""});
  }
}

model::PromptEmbeds encode_with_store(EncodedStore& store, const model::PromptIds& ids,
                                      const std::function<model::PromptEmbeds(const model::PromptIds&)>& encode) {
  const std::int64_t count = ids.ids.size(0);
  std::vector<std::string> keys;
  std::vector<torch::Tensor> contexts(static_cast<std::size_t>(count)), pooled(contexts);
  std::vector<std::int64_t> missing;
  for (std::int64_t row = 0; row < count; ++row) {
    const auto at = static_cast<std::size_t>(row);
    keys.push_back(store.key({"caption", row_text(ids.ids, row), row_text(ids.ids_2, row)}));
    const std::optional<model::NamedTensors> found = store.load(keys.back());
    if (found) {
      contexts[at] = named(*found, "context").to(ids.ids.device());
      if (named(*found, "pooled").defined()) pooled[at] = named(*found, "pooled").to(ids.ids.device());
    } else {
      missing.push_back(row);
    }
  }
  if (!missing.empty()) {
    const torch::Tensor rows = torch::tensor(missing, torch::kInt64).to(ids.ids.device());
    const model::PromptIds some{ids.ids.index_select(0, rows),
                                ids.ids_2.defined() ? ids.ids_2.index_select(0, rows) : torch::Tensor()};
    const model::PromptEmbeds embeds = encode(some);
    for (std::size_t i = 0; i < missing.size(); ++i) {
      const auto at = static_cast<std::size_t>(missing[i]);
      contexts[at] = row_of(embeds.context, static_cast<std::int64_t>(i));
      pooled[at] = row_of(embeds.pooled, static_cast<std::int64_t>(i));
      model::NamedTensors kept = {{"context", contexts[at]}};
      if (pooled[at].defined()) kept.emplace_back("pooled", pooled[at]);
      store.save(keys[at], kept);
    }
  }
  return {torch::cat(contexts), pooled.front().defined() ? torch::cat(pooled) : torch::Tensor()};
}

}  // namespace sdtune::train
