#include "model/weights/safetensors_writer.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "model/files/safetensors_header.h"
#include "model/weights/safetensors_file.h"

namespace sdtune::model {
namespace {

torch::Dtype stored_dtype(const torch::Tensor& tensor, std::optional<torch::Dtype> dtype) {
  return dtype && tensor.is_floating_point() ? *dtype : tensor.scalar_type();
}

}  // namespace

void write_safetensors(FileSystem& files, const std::filesystem::path& path, NamedTensors tensors,
                       std::optional<torch::Dtype> dtype, std::map<std::string, std::string> metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  metadata.emplace("format", "pt");
  std::vector<std::pair<std::string, TensorEntry>> entries;
  for (const auto& [name, tensor] : tensors) {
    entries.emplace_back(name, TensorEntry{safetensors_name(stored_dtype(tensor, dtype)), tensor.sizes().vec(), 0, 0});
  }
  const std::string header = make_safetensors_header(entries, metadata);
  const std::filesystem::path partial = partial_name(path);
  const std::unique_ptr<OutputFile> file = files.create(partial);
  file->write(std::as_bytes(std::span(header)));
  for (const auto& [name, tensor] : tensors) {
    const torch::Tensor bytes = tensor.detach().to(torch::kCPU, stored_dtype(tensor, dtype)).contiguous();
    file->write({static_cast<const std::byte*>(bytes.const_data_ptr()), bytes.nbytes()});
  }
  file->sync();
  file->close();
  files.rename(partial, path);
  files.sync_directory(path.has_parent_path() ? path.parent_path() : std::filesystem::path("."));
}

}  // namespace sdtune::model
