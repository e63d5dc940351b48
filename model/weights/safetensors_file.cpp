#include "model/weights/safetensors_file.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <array>
#include <cstdint>
#include <utility>

namespace sdtune::model {
namespace {

constexpr std::array<std::pair<const char*, torch::Dtype>, 10> kDtypes = {{{"F64", torch::kFloat64},
                                                                           {"F32", torch::kFloat32},
                                                                           {"F16", torch::kFloat16},
                                                                           {"BF16", torch::kBFloat16},
                                                                           {"I64", torch::kInt64},
                                                                           {"I32", torch::kInt32},
                                                                           {"I16", torch::kInt16},
                                                                           {"I8", torch::kInt8},
                                                                           {"U8", torch::kUInt8},
                                                                           {"BOOL", torch::kBool}}};

}  // namespace

torch::Dtype dtype_of_safetensors(const std::string& name) {
  for (const auto& [text, dtype] : kDtypes) {
    if (name == text) return dtype;
  }
  TORCH_CHECK(false, "no dtype of safetensors: ", name);
}

std::string safetensors_name(torch::Dtype dtype) {
  for (const auto& [text, known] : kDtypes) {
    if (dtype == known) return text;
  }
  TORCH_CHECK(false, "safetensors has no name for ", dtype);
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path, PageCache cache)
    : file_(std::make_shared<MappedFile>(path, cache)),
      header_(parse_safetensors_header(file_->bytes(), path.string())) {}

torch::Tensor SafetensorsFile::tensor(const std::string& name) const {
  const auto found = header_.tensors.find(name);
  TORCH_CHECK(found != header_.tensors.end(), "no tensor ", name, " in ", path().string());
  const TensorEntry& entry = found->second;
  const torch::Dtype dtype = dtype_of_safetensors(entry.dtype);
  if (entry.begin == entry.end) return at::empty(entry.shape, dtype);
  const std::byte* data = file_->bytes().data() + header_.data_offset + entry.begin;
  if (reinterpret_cast<std::uintptr_t>(data) % torch::elementSize(dtype) == 0) {
    return at::from_blob(
        const_cast<std::byte*>(data), entry.shape, [file = file_](void*) {}, dtype);
  }
  // A writer that did not pad its header: the bytes must move to where loads of this width are allowed.
  torch::Tensor aligned = at::empty(entry.shape, dtype);
  std::memcpy(aligned.mutable_data_ptr(), data, entry.end - entry.begin);
  return aligned;
}

void SafetensorsFile::release(const std::string& name) const {
  const TensorEntry& entry = header_.tensors.at(name);
  file_->release(file_->bytes().subspan(header_.data_offset + entry.begin, entry.end - entry.begin));
}

}  // namespace sdtune::model
