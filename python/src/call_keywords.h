// The keywords of a pipeline's call, with diffusers' names: those of the declared options
// (model/generate/generate_options.h), and those whose values are objects of Python.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>
#include <string>
#include <vector>

#include "model/generate/generate_options.h"
#include "model/pipeline/text_to_image.h"
#include "python/src/keyword_reader.h"

namespace sdtune::python {

// A list of dicts, one a keyword of a call in the order of its signature: name, type (as an annotation), optional,
// default, allowed, unit, group, help.
pybind11::list call_options();

// The declared options. Throws ConfigError naming the keyword.
model::GenerateOptions read_call_options(KeywordReader& keywords);

// Those that say how texts are read: negative_prompt, prompt_syntax, clip_skip.
model::GenerateOptions read_text_options(KeywordReader& keywords);

// A text as a list of one, or a list of texts; each `copies` times. Throws ConfigError naming "prompt".
std::vector<std::string> read_prompts(const pybind11::object& prompt, std::int64_t copies = 1);

// Sets what comes as objects: seed, generator, latents, image, timesteps, original_size, crops_coords_top_left. `asked`
// are the same call's options. Throws ConfigError naming the keyword.
void read_objects(KeywordReader& keywords, const model::GenerateOptions& asked, const model::ModelBundle& bundle,
                  model::SampleRequest& request);

}  // namespace sdtune::python
