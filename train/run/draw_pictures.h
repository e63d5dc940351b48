// Pictures drawn with the run's own model: class pictures and validation pictures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/base/image.h"
#include "model/base/json.h"
#include "model/pipeline/bundle.h"
#include "model/pipeline/prompt_syntax.h"
#include "train/run/train.h"

namespace sdtune::train {

struct PictureSettings {
  std::string prompt;
  std::optional<std::string> negative_prompt;
  std::int64_t steps = 25;
  double guidance_scale = 7.5;
  std::int64_t resolution = 512;  // px
  model::PromptSyntax syntax = model::PromptSyntax::kPlain;
};

// One picture a seed, each with a generator of its own, so a picture does not depend on its neighbours. Leaves the
// modules' gradients alone. Empty when `stop` asked for it between two denoising steps.
std::vector<Image> draw_pictures(model::ModelBundle& bundle, const PictureSettings& settings,
                                 const std::vector<std::uint64_t>& seeds, const StopFlag& stop);

// What decides the picture besides model, prompt and seed, for the class pictures' manifest.
Json sampler_description(const model::ModelBundle& bundle, const PictureSettings& settings);

}  // namespace sdtune::train
