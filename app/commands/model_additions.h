// What `sample` puts into a model before it draws: another VAE, embeddings.
#pragma once

#include <filesystem>
#include <string>

#include "app/commands/sample_options.h"
#include "model/pipeline/bundle.h"

namespace sdtune::app {

// FILE[:token] of --embedding.
struct EmbeddingFile {
  std::filesystem::path file;
  std::string token;  // empty: as the file says
};
EmbeddingFile parse_embedding(const std::string& text);

// Throws what reading the files throws.
void add_to_model(const SampleOptions& options, model::ModelBundle& bundle);

}  // namespace sdtune::app
