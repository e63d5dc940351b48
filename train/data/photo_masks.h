// Which part of each photo counts in the loss: the image NAME.mask.png beside NAME.jpg, white where the subject is
// and grey in between, black also where it is transparent, else the photo's own alpha channel. A photo without either
// counts as a whole.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/base/image.h"
#include "train/data/batch_plan.h"
#include "train/data/latent_cache.h"
#include "train/data/photo_folder.h"

namespace sdtune::train {

// What is wrong with the photos' masks: one that cannot be read or is of another size than its photo; no mask at all.
std::vector<Problem> mask_problems(const std::vector<Photo>& photos);

// SHA-256 of the mask files, by the photo's name; an alpha channel is part of the photo.
std::map<std::string, std::string> mask_file_hashes(const std::vector<Photo>& photos);

class PhotoMasks {
 public:
  // Resizes each mask as `latents`, loaded from the same photos, resized its photo (antialiased, bilinear: no filter
  // that overshoots). `factor` px of a crop are one place of its latents. Throws DataError naming the file.
  PhotoMasks(const std::vector<Photo>& photos, const LatentCache& latents, std::int64_t factor);

  // [B, 1, h, w] float32 on the CPU in [0, 1]: the mean of the mask over each place of the latents, for the same crop
  // and flip. 1 for class images. All slots must be of one size.
  torch::Tensor of(const std::vector<BatchSlot>& slots) const;

  // Photos that have none, by name.
  const std::vector<std::string>& without() const { return without_; }

  // Those whose mask is white or black everywhere, which is rarely meant; each with what it means.
  const std::vector<Problem>& uniform() const { return uniform_; }

 private:
  const LatentCache& latents_;
  std::int64_t factor_;
  std::vector<std::optional<Image>> masks_;  // grey, resized; one for each photo
  std::vector<std::string> without_;
  std::vector<Problem> uniform_;
};

}  // namespace sdtune::train
