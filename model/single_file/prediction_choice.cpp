#include "model/single_file/prediction_choice.h"

#include <array>
#include <vector>

#include "model/base/error.h"
#include "model/schedule/prediction.h"

namespace sdtune::model {
namespace {

// The specification's, and ComfyUI's.
constexpr std::array kPredictionKeys = {"modelspec.prediction_type", "modelspec.predict_key"};
constexpr const char* kHint = "say which it is: --prediction-type epsilon or v_prediction";

std::optional<PredictionChoice> from_metadata(const LdmFile& file, const char* key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) return std::nullopt;
  const std::string& value = found->second;
  if (value == "v" || value == "v_prediction") return PredictionChoice{"v_prediction", key};
  if (value == "epsilon") return PredictionChoice{"epsilon", key};
  throw WeightError(file.where() + ": " + key, "is not supported (got " + value + "; allowed: epsilon, v)", kHint);
}

}  // namespace

std::string prediction_name(const Json& scheduler_config) {
  switch (prediction_type_of(scheduler_config)) {
    case PredictionType::kEpsilon:
      return "epsilon";
    case PredictionType::kVPrediction:
      return "v_prediction";
    case PredictionType::kSample:
      break;
  }
  return "sample";
}

PredictionChoice choose_prediction(const LdmFile& file, ModelFamily family, const std::optional<std::string>& asked,
                                   const std::optional<Json>& scheduler_config) {
  if (asked) return {*asked, "--prediction-type"};
  std::vector<PredictionChoice> voices;
  for (const char* key : kPredictionKeys) {
    if (const auto said = from_metadata(file, key)) voices.push_back(*said);
  }
  if (file.has("v_pred")) voices.push_back({"v_prediction", "the tensor v_pred"});
  if (scheduler_config) {
    voices.push_back({prediction_name(*scheduler_config), "the scheduler of --config"});
  }
  if (voices.empty()) {
    if (family != ModelFamily::kSd2) return {"epsilon", std::string("as ") + family_name(family) + " was published"};
    throw WeightError(file.where(), "does not say what it predicts, and SD 2.x was published in both kinds", kHint);
  }
  for (const PredictionChoice& voice : voices) {
    if (voice.type == voices.front().type) continue;
    throw WeightError(
        file.where(),
        "is " + voices.front().type + " by " + voices.front().origin + " and " + voice.type + " by " + voice.origin,
        kHint);
  }
  return voices.front();
}

}  // namespace sdtune::model
