// The configs that the three families were published with: a single file holds none.
#pragma once

#include <filesystem>
#include <string>

#include "model/pipeline/bundle_configs.h"
#include "model/single_file/model_family.h"

namespace sdtune::model {

// UNet, VAE, text encoder(s), scheduler of the family, and tokenizers with its padding from the CLIP vocabulary in
// `tokenizer_folder` (vocab.json and merges.txt, or tokenizer.json). `prediction_type` also tells SD 2.x's 768-pixel
// model (v_prediction, DDIM) from its 512-pixel base (epsilon, PNDM). Throws WeightError for a broken vocabulary.
BundleConfigs published_configs(ModelFamily family, const std::string& prediction_type,
                                const std::filesystem::path& tokenizer_folder);

// Throws WeightError, whose hint is --config, for a file whose UNet is not of the published size.
void check_published_size(const LdmFile& file, ModelFamily family);

}  // namespace sdtune::model
