#include "model/single_file/convert.h"

#include "model/base/error.h"
#include "model/pipeline/bundle_configs.h"
#include "model/pipeline/model_survey.h"
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
  SingleFileOptions reading = request.reading;
  reading.names_only = request.dry_run;
  SingleFileModel model = read_single_file(request.model, reading);
  if (!request.dry_run) {
    save_bundle(files, model.bundle, request.output, model.dtype);
    try {
      check_folder(request.output, ldm_parts(model.bundle, model.family), model.dtype);
    } catch (const Error&) {
      files.remove_tree(request.output);
      throw;
    }
  }
  return {model.family, model.prediction, model.dtype, model.matched, std::move(model.ignored)};
}

ConvertReport convert_to_single_file(FileSystem& files, const ConvertRequest& request) {
  const BundleConfigs configs = BundleConfigs::read(request.model);
  ModelSurvey survey = survey_model(request.model);
  if (!survey.problems.empty()) throw WeightError(std::move(survey.problems));
  ConvertReport report{.family = family_of(configs, request.model.string()),
                       .prediction = {prediction_name(configs.scheduler), "the folder's scheduler"},
                       .ignored = {}};
  report.dtype = request.reading.dtype ? *request.reading.dtype : dtype_of_folder(request.model, configs.index.is_xl());
  for (const PartSurvey& part : survey.parts) report.matched += std::ssize(part.keys.matched);
  if (!request.dry_run) {
    const ModelBundle bundle = load_bundle(request.model, report.dtype, torch::kCPU);
    write_single_file(files, bundle, report.family, request.output, report.dtype);
  }
  return report;
}

}  // namespace sdtune::model
