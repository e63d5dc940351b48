#include "model/single_file/model_spec.h"

#include "model/schedule/prediction.h"

namespace sdtune::model {
namespace {

std::string architecture(ModelFamily family, bool velocity) {
  if (family == ModelFamily::kSdxl) return "stable-diffusion-xl-v1-base";
  if (family == ModelFamily::kSd1) return "stable-diffusion-v1";
  return velocity ? "stable-diffusion-v2-768-v" : "stable-diffusion-v2-512";
}

}  // namespace

std::optional<ModelFamily> published_family(const ModelBundle& bundle) {
  const std::int64_t width = bundle.unet->config().cross_attention_dim.front();
  if (bundle.text_encoder_2) return width == 2048 ? std::optional(ModelFamily::kSdxl) : std::nullopt;
  if (width == 768) return ModelFamily::kSd1;
  return width == 1024 ? std::optional(ModelFamily::kSd2) : std::nullopt;
}

std::map<std::string, std::string> model_spec(const ModelBundle& bundle, std::optional<ModelFamily> family,
                                              const std::string& title) {
  const PredictionType type = prediction_type_of(bundle.scheduler_config, bundle.folder.string());
  const bool velocity = type == PredictionType::kVPrediction;
  std::map<std::string, std::string> spec = {{"sai_model_spec", "1.0.0"}, {"title", title}};
  if (type != PredictionType::kSample) spec["prediction_type"] = velocity ? "v" : "epsilon";
  if (family) spec["architecture"] = architecture(*family, velocity);
  const std::string side = std::to_string(bundle.resolution());
  if (bundle.unet->config().sample_size > 0) spec["resolution"] = side + "x" + side;
  return spec;
}

}  // namespace sdtune::model
