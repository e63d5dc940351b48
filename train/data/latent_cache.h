// Photos to latents. The VAE's moments of each picture are computed once and kept; every step samples them anew, so the
// cache changes no number of a run.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "model/base/image.h"
#include "model/image/crop.h"
#include "model/image/resample.h"
#include "model/vae/autoencoder_kl.h"
#include "train/data/batch_plan.h"

namespace sdtune::train {

struct LatentOptions {
  std::uint64_t seed = 0;
  std::int64_t resolution = 512;  // px, side of the training square
  model::Filter filter = model::Filter::kLanczos;
  bool center_crop = true;  // false: the square lies at random, anew at each step
  bool random_flip = false;
  bool cache = true;                // a random crop switches it off
  double scaling_factor = 0.18215;  // of the VAE
  double shift_factor = 0.0;
};

// [B, 3, S, S] float32 on the CPU in [-1, 1] to moments, on the device of training. Called without gradients.
using EncodePictures = std::function<model::Moments(const torch::Tensor&)>;
using Progress = std::function<void(std::int64_t done, std::int64_t total)>;

class LatentCache {
 public:
  LatentCache(LatentOptions options, EncodePictures encode);

  // Reads all pictures, and encodes them unless the cache is off (then they are kept in memory, resized). Afterwards
  // the files are not needed any more; with the cache on, neither is the VAE. Throws DataError naming the file.
  void load(const std::vector<std::filesystem::path>& photos, const std::vector<std::filesystem::path>& class_images,
            const Progress& progress = {});

  // [B, C, h, w] float32 on the device of training: (mean + std * noise - shift_factor) * scaling_factor, noise and
  // flip (and random crop) drawn for each slot.
  torch::Tensor latents(const std::vector<BatchSlot>& slots);

  // SDXL's size conditioning, [B, 6] float32 on the CPU: original height and width, top and left of the crop, target
  // height and width (px), for the same crop and flip as latents().
  torch::Tensor time_ids(const std::vector<BatchSlot>& slots) const;

  bool cached() const;
  // Why it is not cached, in a sentence for the user; empty when it is.
  std::string why_not_cached() const;
  // Of the cached moments or of the pictures kept, in bytes.
  std::int64_t memory_bytes() const;

 private:
  // float32 on the device of training, [B, C, h, w].
  struct Gaussian {
    torch::Tensor mean;
    torch::Tensor deviation;
  };
  struct Picture {
    std::int64_t width = 0;  // px, of the file as seen
    std::int64_t height = 0;
    model::CropPlan plan;  // of the centre crop
    Image resized;         // without the cache: shorter side = resolution
    Gaussian moments;      // with the cache: [1 or 2, C, h, w]; row 1 is of the mirrored square
  };
  // What is drawn for one slot: the corner of the square in the resized picture, and whether it is mirrored.
  struct Placing {
    std::int64_t left = 0;  // px
    std::int64_t top = 0;   // px
    bool mirrored = false;
  };

  Picture load_picture(const std::filesystem::path& file);
  const Picture& picture_of(const BatchSlot& slot) const;
  Placing place(const BatchSlot& slot) const;
  static Gaussian gaussian(const model::Moments& moments);
  Image square(const Picture& picture, const Placing& placing) const;
  Gaussian cached_moments(const std::vector<BatchSlot>& slots) const;
  Gaussian fresh_moments(const std::vector<BatchSlot>& slots) const;

  LatentOptions options_;
  EncodePictures encode_;
  std::vector<Picture> photos_, class_images_;
};

}  // namespace sdtune::train
