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
  std::vector<DeclaredTensor> declared;
  for (const auto& [name, tensor] : tensors) {
    declared.push_back({name, stored_dtype(tensor, dtype), tensor.sizes().vec()});
  }
  write_safetensors(
      files, path, declared, [&](std::size_t index) { return tensors[index].second; }, std::move(metadata));
}

void write_safetensors(FileSystem& files, const std::filesystem::path& path, const std::vector<DeclaredTensor>& tensors,
                       const std::function<torch::Tensor(std::size_t)>& read,
                       std::map<std::string, std::string> metadata) {
  metadata.emplace("format", "pt");
  std::vector<std::pair<std::string, TensorEntry>> entries;
  for (const DeclaredTensor& tensor : tensors) {
    entries.emplace_back(tensor.name, TensorEntry{safetensors_name(tensor.dtype), tensor.shape, 0, 0});
  }
  const std::string header = make_safetensors_header(entries, metadata);
  write_file_atomically(files, path, [&](OutputFile& file) {
    file.write(std::as_bytes(std::span(header)));
    for (std::size_t index = 0; index < tensors.size(); ++index) {
      const torch::Tensor bytes = read(index).detach().to(torch::kCPU, tensors[index].dtype).contiguous();
      TORCH_CHECK(bytes.sizes() == torch::IntArrayRef(tensors[index].shape), tensors[index].name, ": another shape");
      file.write({static_cast<const std::byte*>(bytes.const_data_ptr()), bytes.nbytes()});
    }
  });
}

}  // namespace sdtune::model
