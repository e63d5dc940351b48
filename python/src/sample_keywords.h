// The keywords of a pipeline's call, with diffusers' names.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>
#include <string>
#include <vector>

#include "model/pipeline/text_to_image.h"
#include "python/src/keyword_reader.h"

namespace sdtune::python {

// prompt_syntax and clip_skip. Throws ConfigError naming the keyword.
model::PromptRules read_prompt_rules(KeywordReader& keywords);

// A text, or a list of the same text (diffusers takes other lists as well; one text for all is what we run); nothing
// for None. Throws ConfigError naming "negative_prompt".
std::optional<std::string> read_negative_prompt(KeywordReader& keywords);

// A text as a list of one, or a list of texts. Throws ConfigError naming "prompt".
std::vector<std::string> texts_of(const pybind11::object& prompt);

// What of a call says which pictures of the bundle are drawn. Throws ConfigError naming the keyword.
model::SampleRequest read_sample_request(const pybind11::object& prompt, KeywordReader& keywords,
                                         const model::ModelBundle& bundle);

}  // namespace sdtune::python
