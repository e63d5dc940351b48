// The README.md of an uploaded model.
#pragma once

#include <filesystem>
#include <string>

namespace sdtune::app {

struct ModelCardRequest {
  std::string id;               // org/name
  std::filesystem::path run;    // for its config.yaml, where it has one
  std::filesystem::path model;  // what is uploaded
  std::string sheet;            // the image's path in the repository; empty: none
};

// Markdown behind YAML for the hub: base, what kind of model, the words that call the subject, how it was trained, how
// to use it, and that the person's consent is needed. Nothing of this machine's folders, photos or captions is in it.
// Throws ConfigError and WeightError for a config.yaml or sdtune.json that is malformed.
std::string model_card(const ModelCardRequest& request);

}  // namespace sdtune::app
