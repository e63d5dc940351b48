// Which files of a model's repository make a pipeline.
#pragma once

#include <string>
#include <vector>

#include "model/base/json.h"

namespace sdtune::app {

// Of the files of a repository whose model_index.json is `index`: that one, licence texts, and of each component that
// it names the settings (.json, .txt, .model) and the weights as safetensors: those of `variant` (fp16) where the
// component has them, else the plain ones; never the weights of another framework, other variants or pickles.
// Components in `without` are left out. Throws ConfigError for a name in `without` that is no component, a variant that
// no component has; WeightError for a component whose weights are pickles alone, naming them.
std::vector<std::string> pipeline_files(const std::vector<std::string>& files, const Json& index,
                                        const std::string& variant, const std::vector<std::string>& without,
                                        const std::string& id);

}  // namespace sdtune::app
