// What the options add to a loaded model: another VAE, textual inversions.
#pragma once

#include <filesystem>
#include <string>

#include "model/generate/generate_options.h"
#include "model/pipeline/bundle.h"

namespace sdtune::model {

// FILE[:token] of --embedding.
struct EmbeddingFile {
  std::filesystem::path file;
  std::string token;  // empty: as the file says
};
EmbeddingFile parse_embedding(const std::string& text);

// Throws what reading the files throws.
void add_to_model(const GenerateOptions& options, ModelBundle& bundle);

}  // namespace sdtune::model
