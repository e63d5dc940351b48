#include "app/convert/pickle_conversion.h"

#include <cstdio>
#include <cstring>
#include <optional>

#include "app/cli/print_json.h"
#include "app/commands/model_output.h"
#include "model/base/error.h"
#include "model/base/printable.h"
#include "model/core/device.h"
#include "model/files/file_system.h"
#include "model/single_file/pickle_tensors.h"
#include "model/weights/safetensors_file.h"

namespace sdtune::app {
namespace {

namespace fs = std::filesystem;

// Bits, so that a NaN equals itself.
bool same_bits(const torch::Tensor& one, const torch::Tensor& other) {
  const torch::Tensor a = one.contiguous(), b = other.contiguous();
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         (a.nbytes() == 0 || std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0);
}

void verify(const fs::path& written, const model::NamedTensors& tensors, std::optional<torch::Dtype> dtype) {
  const model::SafetensorsFile file(written);
  for (const auto& [name, tensor] : tensors) {
    const bool cast = dtype && tensor.is_floating_point();
    if (same_bits(file.tensor(name), cast ? tensor.to(*dtype) : tensor)) continue;
    throw StorageError(written.string() + ": " + name, "was not read back as it was written");
  }
}

}  // namespace

void convert_pickle(const ConvertOptions& options) {
  const fs::path output = options.output;
  check_model_output(output, options.overwrite);
  const model::PickleTensors read = model::read_pickle_tensors(options.pickle, options.pickle_key);
  std::optional<torch::Dtype> dtype;
  if (options.dtype != "auto") dtype = model::parse_dtype(options.dtype, "--dtype");
  std::fprintf(stderr, "pickle   %s%s%s\n", options.pickle.c_str(), read.key.empty() ? "" : ", entry ",
               printable(read.key).c_str());
  std::fprintf(stderr, "tensors  %zu; %zu entries beside them are none and are left out%s%s\n", read.tensors.size(),
               read.left_out.size(), read.left_out.empty() ? "" : ": ",
               read.left_out.empty() ? "" : printable(read.left_out.front()).c_str());
  if (options.dry_run) {
    std::fprintf(stderr, "dry run  nothing is written\n");
  } else {
    create_parent_folder(real_file_system(), output);
    model::write_safetensors(real_file_system(), output, read.tensors, dtype);
    verify(output, read.tensors, dtype);
    std::fprintf(stderr, "checked  read back, verified bit for bit\n");
  }
  if (options.json) {
    print_json({{"kind", "pickle"},
                {"pickle", options.pickle},
                {"pickle_key", read.key},
                {"output", options.dry_run ? Json() : Json(options.output)},
                {"tensors", read.tensors.size()},
                {"left_out", read.left_out}});
  } else if (!options.dry_run) {
    std::puts(output.c_str());
  }
}

}  // namespace sdtune::app
