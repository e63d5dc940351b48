// What encodes photos and class images for training: the base's autoencoder.
#pragma once

#include "model/pipeline/bundle.h"
#include "train/data/latent_cache.h"

namespace sdtune::train {

// On the autoencoder's device and in its number format. The bundle outlives what is returned.
EncodeImages image_encoder(model::ModelBundle& bundle);

// The same in float32: the autoencoder is float32 meanwhile, and has the bits that it had afterwards. Null where it is
// float32 already.
EncodeImages float32_image_encoder(model::ModelBundle& bundle);

}  // namespace sdtune::train
