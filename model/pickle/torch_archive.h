// The tensors of a file that torch.save wrote: a zip file with a pickle that says what they are and an entry for each
// storage. LibTorch-free and hostile: whatever does not describe the file's bytes exactly is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace sdtune {

// Where a tensor's elements are: element (i, j, ...) begins at byte `begin` + (i * strides[0] + j * strides[1] + ...) *
// the dtype's bytes. Every one of them is inside the file.
struct ArchivedTensor {
  std::string dtype;  // in safetensors' names: F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  // in elements, as many as `shape` has; 0 where a dimension is expanded
  std::uint64_t begin = 0;            // in the file, of the first element
  std::uint64_t end = 0;  // in the file, behind the last element that is reached; begin where there are none
};

struct TorchArchive {
  std::map<std::string, ArchivedTensor> tensors;
  std::string key;                    // the entry of the file that holds them; empty: the file's own mapping
  std::vector<std::string> left_out;  // names beside them that are no tensors
};

// Whether it begins as a zip file does.
bool is_torch_archive(std::span<const std::byte> file);

// `key`: which entry of the file holds the tensors; empty: state_dict where there is one, else the file's own mapping.
// Throws WeightError naming `where` and the tensor: a pickle that is no zip file (torch.save before 1.6; the hint says
// how to convert), TorchScript, another byte order, a pickle that read_pickle refuses, a storage that is missing or
// smaller than its tensor, dtypes that safetensors does not have, names that are no text, tensors that would take more
// than four times the file's bytes when they are written (expanded ones).
TorchArchive parse_torch_archive(std::span<const std::byte> file, const std::string& where,
                                 const std::string& key = "");

}  // namespace sdtune
