// Image metadata in the form of AUTOMATIC1111's web interface, which many programs read and write.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/base/json.h"
#include "model/generate/generate_options.h"
#include "model/generate/generation_metadata.h"
#include "model/options/settings.h"
#include "model/pipeline/bundle.h"
#include "model/pipeline/text_to_image.h"

namespace sdtune::model {

// What of the sampling the options leave to the model.
struct ModelSampling {
  PixelSize first_pass;                    // the size before a second pass
  std::string scheduler_class;             // diffusers'
  Json scheduler_config = Json::object();  // every key of it
  bool is_xl = false;                      // which "Clip skip" counts by
};

// The text chunk `parameters`: the prompt, "Negative prompt: ..." where there is one, and "Steps: 30, Sampler: ...,
// ..." on the last line. `options` with the image's own prompt and seed, as ImageGenerator::resolved returns them.
std::string a1111_parameters(const GenerateOptions& options, const ImageSources& sources,
                             const ModelSampling& sampling);

// Sets what such a text of any program says and that is not among `given`; the warnings name what is not taken over:
// the model, LoRAs, and every setting that has no counterpart. "Clip skip" is set as for SD 1.x, and stands in the
// result for clip_skip_of_a1111. Throws ConfigError naming `where` for a text without "Steps: ".
AppliedMetadata apply_a1111_parameters(const std::string& text, const std::string& where, const Origins& given,
                                       GenerateOptions& options);

// GenerateOptions::clip_skip for what A1111's programs made of "Clip skip" `theirs` with this model. SD 1.x: 1 is the
// last layer. SDXL: 1 and 2 are the penultimate one, larger numbers count on as in Forge. SD 2.x: ignored.
std::int64_t clip_skip_of_a1111(std::int64_t theirs, const ModelBundle& bundle);

}  // namespace sdtune::model
