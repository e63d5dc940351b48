// What a single file's UNet predicts. The tensors do not show it, so it must be given.
#pragma once

#include <optional>
#include <string>

#include "model/base/json.h"
#include "model/single_file/ldm_file.h"
#include "model/single_file/model_family.h"

namespace sdtune::model {

struct PredictionChoice {
  std::string type;    // epsilon or v_prediction
  std::string origin;  // who says so, for the report
};

// "epsilon", "v_prediction" or "sample". Throws WeightError for another value.
std::string prediction_name(const Json& scheduler_config);

// `asked` (--prediction-type) wins. Else the file's metadata (modelspec.prediction_type, ComfyUI's
// modelspec.predict_key), a tensor named v_pred and the given scheduler's config decide, and must not contradict each
// other. Where none of them says it, SD 1.x and SDXL are epsilon, as published; SD 2.x was published in both kinds, so
// it is refused (WeightError naming the flag).
PredictionChoice choose_prediction(const LdmFile& file, ModelFamily family, const std::optional<std::string>& asked,
                                   const std::optional<Json>& scheduler_config);

}  // namespace sdtune::model
