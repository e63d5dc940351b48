#include "model/single_file/pickle_tensors.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "model/files/mapped_file.h"
#include "model/pickle/torch_archive.h"
#include "model/weights/safetensors_file.h"

namespace sdtune::model {
namespace {

torch::Tensor view_of(const std::shared_ptr<const MappedFile>& file, const ArchivedTensor& entry) {
  const torch::Dtype dtype = dtype_of_safetensors(entry.dtype);
  if (entry.begin == entry.end) return at::empty(entry.shape, dtype);
  const std::byte* data = file->bytes().data() + entry.begin;
  if (reinterpret_cast<std::uintptr_t>(data) % torch::elementSize(dtype) == 0) {
    return at::from_blob(
        const_cast<std::byte*>(data), entry.shape, entry.strides, [file](void*) {}, dtype);
  }
  // Another writer than PyTorch's, which aligns: the bytes must move to where loads of this width are allowed.
  const auto elements = static_cast<std::int64_t>((entry.end - entry.begin) / torch::elementSize(dtype));
  const torch::Tensor aligned = at::empty({elements}, dtype);
  std::memcpy(aligned.mutable_data_ptr(), data, entry.end - entry.begin);
  return aligned.as_strided(entry.shape, entry.strides);
}

}  // namespace

PickleTensors read_pickle_tensors(const std::filesystem::path& path, const std::string& key) {
  const auto file = std::make_shared<const MappedFile>(path);
  TorchArchive archive = parse_torch_archive(file->bytes(), path.string(), key);
  PickleTensors read{.tensors = {}, .key = std::move(archive.key), .left_out = std::move(archive.left_out)};
  for (const auto& [name, entry] : archive.tensors) read.tensors.emplace_back(name, view_of(file, entry));
  return read;
}

}  // namespace sdtune::model
