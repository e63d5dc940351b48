// What the steps of a run read, made once before the first.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "train/data/batch_plan.h"
#include "train/data/class_images.h"
#include "train/data/encoded_store.h"
#include "train/data/latent_cache.h"
#include "train/data/photo_folder.h"
#include "train/data/photo_masks.h"
#include "train/data/text_cache.h"
#include "train/identity/reference_photos.h"

namespace sdtune::train {

// Photos that the run does not learn from.
struct HeldOut {
  std::unique_ptr<LatentCache> latents;
  std::vector<std::string> captions;  // one a photo
};

// What the run learns from, on the device.
struct TrainingData {
  PhotoFolder photos;
  IdentityInputs identity;               // until the identity evaluations take it
  std::vector<ClassImage> class_images;  // empty without prior preservation
  std::unique_ptr<EncodedStore> store;   // null: what is encoded is kept in memory only
  std::unique_ptr<LatentCache> latents;
  std::unique_ptr<PhotoMasks> masks;  // null without masked_loss; refers to latents
  std::unique_ptr<TextCache> texts;
  std::unique_ptr<BatchPlan> plan;
  std::optional<HeldOut> held_out;
};

}  // namespace sdtune::train
