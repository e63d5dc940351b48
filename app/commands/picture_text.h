// How a picture was drawn, in the words of AUTOMATIC1111's web interface, which many programs read and write.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/commands/picture_record.h"
#include "app/commands/sample_options.h"
#include "model/base/error.h"
#include "train/config/settings.h"

namespace sdtune::app {

// What is known of a picture besides the options.
struct DrawnSize {
  std::int64_t width = 0;       // px
  std::int64_t height = 0;      // px
  std::string scheduler_class;  // diffusers'
};

// The text chunk `parameters`: the prompt, "Negative prompt: ..." where there is one, and "Steps: 30, Sampler: ...,
// ..." on the last line. `options` with the picture's own prompt and seed.
std::string parameters_text(const SampleOptions& options, const DrawingSources& sources, const DrawnSize& drawn);

// Sets what such a text of any program says and that is not among `given`; the warnings name what is not taken over:
// the model, LoRAs, and every setting that has no counterpart. Throws ConfigError naming `where` for a text without
// "Steps: ".
AppliedRecord apply_parameters(const std::string& text, const std::string& where, const train::Origins& given,
                               SampleOptions& options);

}  // namespace sdtune::app
