#include "app/convert/pickle_conversion.h"

#include <cstdio>
#include <optional>

#include "app/cli/print_json.h"
#include "app/commands/model_output.h"
#include "model/base/error.h"
#include "model/base/printable.h"
#include "model/core/device.h"
#include "model/files/file_system.h"
#include "model/single_file/pickle_tensors.h"
#include "model/single_file/single_file_read.h"
#include "model/weights/safetensors_file.h"
#include "model/weights/safetensors_writer.h"
#include "model/weights/stored_weights.h"
#include "model/weights/tensor_source.h"

namespace sdtune::app {
namespace {

namespace fs = std::filesystem;

void verify(const model::SafetensorsFile& file, const fs::path& output, const model::NamedTensors& tensors,
            std::optional<torch::Dtype> dtype) {
  for (const auto& [name, tensor] : tensors) {
    const bool cast = dtype && tensor.is_floating_point();
    if (model::same_bits(file.tensor(name), cast ? tensor.to(*dtype) : tensor)) continue;
    throw StorageError(output.string() + ": " + name, "was not read back as it was written");
  }
}

}  // namespace

void convert_pickle(const ConvertOptions& options) {
  const fs::path output = options.output;
  check_model_output(output, options.overwrite);
  const model::PickleTensors read = model::read_pickle_tensors(options.pickle, options.pickle_key);
  std::optional<torch::Dtype> dtype;
  if (options.dtype != "auto") {
    dtype = model::parse_dtype(options.dtype, "--dtype");
    model::refuse_overflow({model::TensorSource::of_tensors(options.pickle, read.tensors)}, *dtype);
  }
  std::fprintf(stderr, "pickle   %s%s%s\n", options.pickle.c_str(), read.key.empty() ? "" : ", entry ",
               printable(read.key).c_str());
  std::fprintf(stderr, "tensors  %zu; %zu entries beside them are none and are left out%s%s\n", read.tensors.size(),
               read.left_out.size(), read.left_out.empty() ? "" : ": ",
               read.left_out.empty() ? "" : printable(read.left_out.front()).c_str());
  if (options.dry_run) {
    std::fprintf(stderr, "dry run  nothing is written\n");
  } else {
    create_parent_folder(real_file_system(), output);
    write_verified_file(real_file_system(), output, [&](const fs::path& partial) {
      model::write_safetensors(real_file_system(), partial, read.tensors, dtype);
      verify(model::SafetensorsFile(partial), output, read.tensors, dtype);
    });
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
