#include "model/single_file/convert.h"

#include "model/base/error.h"
#include "model/pipeline/bundle_configs.h"
#include "model/single_file/ldm_parts.h"
#include "model/single_file/single_file_write.h"
#include "model/single_file/stored_weights.h"

namespace sdtune::model {
namespace {

namespace fs = std::filesystem;

// The folder as a loader will see it.
void check_folder(const fs::path& folder, const std::vector<LdmPart>& parts, torch::Dtype dtype) {
  BundleConfigs::read(folder);
  for (const LdmPart& part : parts) {
    const TensorSource source = TensorSource::of_part(folder / part.name, part.kind.stem);
    check_stored_weights(*part.module, source, part.kind.family, dtype);
  }
}

torch::Dtype dtype_of_folder(const fs::path& folder, bool xl) {
  std::vector<TensorSource> sources = {TensorSource::of_part(folder / "unet", kUNetPart.stem),
                                       TensorSource::of_part(folder / "vae", kVaePart.stem),
                                       TensorSource::of_part(folder / "text_encoder", kTextEncoderPart.stem)};
  if (xl) sources.push_back(TensorSource::of_part(folder / "text_encoder_2", kTextEncoderPart.stem));
  return joint_dtype(sources);
}

}  // namespace

ConvertReport convert_to_folder(FileSystem& files, const ConvertRequest& request) {
  SingleFileModel model = read_single_file(request.model, request.reading);
  const torch::Dtype dtype = model.bundle.dtype();
  if (!request.dry_run) {
    save_bundle(files, model.bundle, request.output, dtype);
    try {
      check_folder(request.output, ldm_parts(model.bundle, model.family), dtype);
    } catch (const Error&) {
      files.remove_tree(request.output);
      throw;
    }
  }
  return {model.family, model.prediction, dtype, model.loaded, std::move(model.ignored)};
}

ConvertReport convert_to_single_file(FileSystem& files, const ConvertRequest& request) {
  const BundleConfigs configs = BundleConfigs::read(request.model);
  const ModelFamily family = family_of(configs, request.model.string());
  const torch::Dtype dtype =
      request.reading.dtype ? *request.reading.dtype : dtype_of_folder(request.model, configs.index.is_xl());
  const ModelBundle bundle = load_bundle(request.model, dtype, torch::kCPU);
  ConvertReport report{.family = family,
                       .prediction = {prediction_name(configs.scheduler), "the folder's scheduler"},
                       .dtype = dtype,
                       .ignored = {}};
  for (const LdmPart& part : ldm_parts(bundle, family)) {
    report.parameters += std::ssize(part.module->parameters());
  }
  if (!request.dry_run) write_single_file(files, bundle, family, request.output, dtype);
  return report;
}

}  // namespace sdtune::model
