// A fuzzer's target: any bytes at all are read or refused, and what is read lies inside the file.
// torch_archive_fuzz_test.cpp feeds it mutated files; libFuzzer drives it where clang is at hand:
//   clang++ -std=c++20 -g -fsanitize=fuzzer,address,undefined -I. -DFMT_HEADER_ONLY
//   tests/model/pickle/torch_archive_fuzz.cpp
//     model/pickle/*.cpp model/files/{safetensors_header,safetensors_header_reader,weight_format}.cpp model/base/*.cpp
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "model/base/error.h"
#include "model/pickle/torch_archive.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto archive = sdtune::parse_torch_archive(std::as_bytes(std::span(data, size)), "fuzz");
    for (const auto& [name, tensor] : archive.tensors) {
      if (tensor.begin > tensor.end || tensor.end > size || tensor.shape.size() != tensor.strides.size()) std::abort();
    }
  } catch (const sdtune::WeightError&) {
  }
  return 0;
}
