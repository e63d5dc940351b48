// Photos to latents. The VAE's moments of each image are computed once and kept; every step samples them anew, so the
// cache changes no number of a run.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/base/image.h"
#include "model/image/crop.h"
#include "model/image/resample.h"
#include "model/vae/autoencoder_kl.h"
#include "train/data/batch_plan.h"
#include "train/data/crop_rule.h"
#include "train/data/decoded_photos.h"
#include "train/data/encoded_store.h"
#include "train/data/tensor_blocks.h"

namespace sdtune::train {

struct LatentOptions {
  std::uint64_t seed = 0;
  CropRule crop;
  model::Filter filter = model::Filter::kLanczos;
  bool random_flip = false;
  bool cache = true;                // a random crop switches it off
  double scaling_factor = 0.18215;  // of the VAE
  double shift_factor = 0.0;
  torch::Device device = torch::kCPU;  // of training
  // Of moments and latents there, so that the UNet changes no layout at each step.
  torch::MemoryFormat memory_format = torch::MemoryFormat::Contiguous;
};

// An image to be trained on.
struct ImageFile {
  std::filesystem::path path;
  std::optional<model::ImageBox> shown;              // what its crop is to show, px of the image as seen
  std::shared_ptr<const DecodedPhoto> decoded = {};  // resized for that crop already; null: read from the file
};

// [B, 3, H, W] float32 on the CPU in [-1, 1] to moments, on the device of training. Called without gradients.
using EncodeImages = std::function<model::Moments(const torch::Tensor&)>;
using Progress = std::function<void(std::int64_t done, std::int64_t total)>;

// For images that overflow in the VAE's number format: the same in float32, null where it is float32 already.
struct EncodeAgain {
  EncodeImages in_float32;
  std::function<void(const Problem&)> warn;  // once, naming the first image
};

class LatentCache {
 public:
  // What is drawn for one slot: the corner of the crop in the resized image, and whether it is mirrored.
  struct Placing {
    std::int64_t left = 0;  // px
    std::int64_t top = 0;   // px
    bool mirrored = false;
  };

  // `store`, if given, must outlive load(): moments come from it where it has them, and go there.
  LatentCache(LatentOptions options, EncodeImages encode, EncodedStore* store = nullptr, EncodeAgain again = {});

  // Reads all images, and encodes them unless the cache is off (then they are kept in memory, resized). Afterwards
  // the files are not needed any more; with the cache on, neither is the VAE. Throws DataError naming the file, also
  // where its latents are not finite. (Without the cache a step's loss then is not, which needs no further wait.)
  void load(const std::vector<ImageFile>& photos, const std::vector<ImageFile>& class_images,
            const Progress& progress = {});

  // Each image once, or as often as `repeats` says, in the bucket of its size: for BatchPlan.
  EpochImages photo_epoch(const std::vector<std::int64_t>& repeats) const;
  EpochImages class_epoch() const;
  // Size of what is trained on, px.
  model::ImageSize size_of(const BatchSlot& slot) const;
  // How the image was resized, and where its crop lies this time.
  const model::CropPlan& plan_of(const BatchSlot& slot) const { return image_of(slot).plan; }
  Placing place(const BatchSlot& slot) const;

  // [B, C, h, w] float32 on the device of training: (mean + std * noise - shift_factor) * scaling_factor, noise and
  // flip (and random crop) drawn for each slot. All slots must be of one size.
  torch::Tensor latents(const std::vector<BatchSlot>& slots);

  // SDXL's size conditioning, [B, 6] float32 on the CPU: original height and width, top and left of the crop in the
  // resized image, target height and width (px), for the same crop and flip as latents().
  torch::Tensor time_ids(const std::vector<BatchSlot>& slots) const;

  bool cached() const;
  // Why it is not cached, in a sentence for the user; empty when it is.
  std::string why_not_cached() const;
  // Of the cached moments or of the images kept, in bytes.
  std::int64_t memory_bytes() const;

 private:
  // float32 on the device of training, [B, C, h, w].
  struct Gaussian {
    torch::Tensor mean;
    torch::Tensor deviation;
  };
  struct CachedImage {
    std::int64_t width = 0;  // px, of the file as seen
    std::int64_t height = 0;
    model::CropPlan plan;  // where the crop does not lie at random
    Image resized;         // without the cache: as the plan has it
    Gaussian moments;      // with the cache: [1 or 2, C, h, w]; row 1 is of the mirrored crop
  };

  CachedImage load_image(const ImageFile& file);
  std::optional<Gaussian> stored_moments(const std::string& key) const;
  Gaussian encode_views(const CachedImage& entry, const std::string& where);
  std::string store_key(const CachedImage& entry, const std::string& file_hash) const;
  const CachedImage& image_of(const BatchSlot& slot) const;
  Gaussian gaussian(const model::Moments& moments) const;
  Gaussian laid_out(Gaussian moments) const;
  Gaussian kept(const Gaussian& moments);
  static Image cut_out(const CachedImage& entry, const Placing& placing);
  Gaussian cached_moments(const std::vector<BatchSlot>& slots) const;
  Gaussian fresh_moments(const std::vector<BatchSlot>& slots) const;

  LatentOptions options_;
  EncodeImages encode_;
  EncodedStore* store_;
  EncodeAgain again_;
  bool has_warned_ = false;
  TensorBlocks blocks_;  // of the moments
  std::vector<CachedImage> photos_, class_images_;
};

}  // namespace sdtune::train
