#include "model/generate/model_additions.h"

#include <cstddef>
#include <system_error>

#include "model/pipeline/textual_inversion.h"
#include "model/single_file/vae_file.h"

namespace sdtune::model {

EmbeddingFile parse_embedding(const std::string& text) {
  std::error_code status;
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || std::filesystem::exists(text, status)) return {text, ""};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

void add_to_model(const GenerateOptions& options, ModelBundle& bundle) {
  if (!options.vae.empty()) replace_vae(bundle, options.vae);
  bundle.vae->set_tiling(options.vae_tiling);
  bundle.vae->set_slicing(options.vae_slicing);
  for (const std::string& text : options.embedding) {
    const EmbeddingFile embedding = parse_embedding(text);
    add_textual_inversion(bundle, read_textual_inversion(embedding.file, bundle, embedding.token));
  }
}

}  // namespace sdtune::model
