#include "model/single_file/single_file_write.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>

#include <cmath>
#include <map>
#include <string>

#include "model/base/error.h"
#include "model/base/json.h"
#include "model/schedule/prediction.h"
#include "model/single_file/ldm_parts.h"
#include "model/single_file/model_spec.h"
#include "model/weights/stored_weights.h"

namespace sdtune::model {
namespace {

namespace fs = std::filesystem;

std::map<std::string, std::string> metadata(const ModelBundle& bundle, ModelFamily family, const fs::path& path) {
  std::map<std::string, std::string> map;
  const std::string title = valid_text(path.stem().string());
  for (const auto& [field, value] : model_spec(bundle, family, title)) map["modelspec." + field] = value;
  return map;
}

// CLIP's logit scale at the end of its training, ln 100.
torch::Tensor logit_scale() {
  return at::full({}, std::log(100.0), torch::kFloat32);
}

// OpenCLIP-H as its code builds it: 24 layers and a projection. Here the last layer is the one before it once more.
void complete_open_clip(const CLIPTextModel& encoder, NamedTensors& tensors) {
  const std::string prefix = std::string(kSd2TextPrefix) + "transformer.resblocks.";
  const std::int64_t layers = encoder->config().num_hidden_layers;
  const std::string last = prefix + std::to_string(layers - 1) + ".";
  NamedTensors dummy;
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with(last)) {
      dummy.emplace_back(prefix + std::to_string(layers) + "." + name.substr(last.size()), tensor);
    }
  }
  tensors.insert(tensors.end(), dummy.begin(), dummy.end());
  const std::int64_t width = encoder->config().hidden_size;
  tensors.emplace_back(std::string(kSd2TextPrefix) + "text_projection", at::eye(width, torch::kFloat32));
  tensors.emplace_back(std::string(kSd2TextPrefix) + "logit_scale", logit_scale());
}

NamedTensors all_tensors(const ModelBundle& bundle, ModelFamily family, const std::vector<LdmPart>& parts) {
  NamedTensors all;
  for (const LdmPart& part : parts) {
    for (const auto& [name, tensor] : stored_tensors(part)) all.emplace_back(part.prefix + name, tensor);
  }
  const bool velocity = predicts_velocity(bundle.scheduler_config, bundle.folder.string());
  if (family == ModelFamily::kSd2) complete_open_clip(bundle.text_encoder, all);
  if (family == ModelFamily::kSdxl) {
    all.emplace_back(std::string(kSdxlText2Prefix) + "logit_scale", logit_scale());
    // How community files of SDXL say it, which programs look for.
    if (velocity) all.emplace_back("v_pred", at::empty({0}, torch::kFloat32));
  }
  // A1111 and Forge look for this one in files of every family.
  const auto rescaled = bundle.scheduler_config.find("rescale_betas_zero_snr");
  if (rescaled != bundle.scheduler_config.end() && *rescaled == true) {
    all.emplace_back("ztsnr", at::empty({0}, torch::kFloat32));
  }
  return all;
}

}  // namespace

bool predicts_velocity(const Json& scheduler_config, const std::string& where) {
  const PredictionType type = prediction_type_of(scheduler_config, where);
  if (type == PredictionType::kSample) {
    throw WeightError(where, "predicts x0, which no single file can say (got sample; allowed: epsilon, v_prediction)");
  }
  return type == PredictionType::kVPrediction;
}

std::int64_t write_single_file(FileSystem& files, const ModelBundle& bundle, ModelFamily family, const fs::path& path,
                               torch::Dtype dtype) {
  const std::vector<LdmPart> parts = ldm_parts(bundle, family);
  NamedTensors tensors = all_tensors(bundle, family, parts);
  const std::int64_t count = std::ssize(tensors);
  create_parent_folder(files, path);
  write_verified_file(files, path, [&](const fs::path& partial) {
    write_safetensors(files, partial, std::move(tensors), dtype, metadata(bundle, family, path));
    const LdmFile written(partial);
    for (const LdmPart& part : parts) {
      const TensorSource source = TensorSource::of_tensors(path.string(), take_part(written, part, false).tensors);
      check_stored_weights(*part.module, source, part.kind.family, dtype);
    }
  });
  return count;
}

}  // namespace sdtune::model
