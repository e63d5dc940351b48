#include "model/single_file/convert.h"

#include "model/base/error.h"
#include "model/pipeline/bundle_configs.h"
#include "model/pipeline/model_survey.h"
#include "model/single_file/single_file_write.h"

namespace sdtune::model {

namespace fs = std::filesystem;

namespace {

std::vector<TensorSource> sources_of_folder(const fs::path& folder) {
  std::vector<TensorSource> sources = {TensorSource::of_part(folder / "unet", kUNetPart.stem),
                                       TensorSource::of_part(folder / "vae", kVaePart.stem),
                                       TensorSource::of_part(folder / "text_encoder", kTextEncoderPart.stem)};
  if (ModelIndex::read(folder).is_xl()) {
    sources.push_back(TensorSource::of_part(folder / "text_encoder_2", kTextEncoderPart.stem));
  }
  return sources;
}

}  // namespace

torch::Dtype dtype_of_folder(const fs::path& folder) {
  const std::vector<TensorSource> sources = sources_of_folder(folder);
  refuse_float64(sources);
  return joint_dtype(sources);
}

ConvertReport convert_to_folder(FileSystem& files, const ConvertRequest& request) {
  SingleFileOptions reading = request.reading;
  reading.names_only = request.dry_run;
  SingleFileModel model = read_single_file(request.model, reading);
  if (!request.dry_run) save_bundle(files, model.bundle, request.output, model.dtype);
  return {model.family, model.prediction, model.dtype, model.matched, std::move(model.ignored)};
}

ConvertReport convert_to_single_file(FileSystem& files, const ConvertRequest& request) {
  const BundleConfigs configs = BundleConfigs::read(request.model);
  // So that a dry run refuses what the real one would.
  predicts_velocity(configs.scheduler, request.model.string());
  if (std::vector<Problem> misfits = configs.find_misfits(request.model); !misfits.empty()) {
    throw WeightError(std::move(misfits));
  }
  ModelSurvey survey = survey_model(request.model);
  if (!survey.problems.empty()) throw WeightError(std::move(survey.problems));
  ConvertReport report{.family = family_of(configs, request.model.string()),
                       .prediction = {prediction_name(configs.scheduler), "the folder's scheduler"},
                       .ignored = {}};
  report.dtype = request.reading.dtype ? *request.reading.dtype : dtype_of_folder(request.model);
  if (request.reading.dtype) refuse_overflow(sources_of_folder(request.model), report.dtype);
  for (const PartSurvey& part : survey.parts) report.matched += std::ssize(part.keys.matched);
  if (!request.dry_run) {
    const ModelBundle bundle = load_bundle(request.model, report.dtype, torch::kCPU);
    write_single_file(files, bundle, report.family, request.output, report.dtype);
  }
  return report;
}

}  // namespace sdtune::model
