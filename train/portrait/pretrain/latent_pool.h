// The pool's images as the VAE sees them: moments computed once an image, kept on disk in half precision.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "model/files/file_system.h"
#include "model/vae/autoencoder_kl.h"
#include "model/weights/safetensors_file.h"
#include "train/portrait/pretrain/image_pool.h"

namespace sdtune::train::pretrain {

class LatentPool {
 public:
  // Shards in the folder that another VAE made are made again. `vae` is float32, without gradients. Throws ConfigError
  // naming the folder where they are of other images than `images`, or of another number of them. Records of earlier
  // versions say nothing of the images: their shards are taken for these images' where they hold as many, and the
  // record is completed.
  LatentPool(FileSystem& files, std::filesystem::path folder, model::AutoencoderKL vae, ImagePool& images);

  // Means and standard deviations of the posterior, each [B, C, h, w] float32 on the CPU, without the scaling factor.
  struct Posterior {
    torch::Tensor mean, deviation;
  };
  Posterior posterior(const std::vector<std::int64_t>& indices);

  // One over the standard deviation of the first shard's latents: the VAE's scaling_factor.
  double scaling_factor();

 private:
  std::int64_t images_in(std::int64_t shard) const;
  std::filesystem::path shard_path(std::int64_t index) const;
  void check_shards() const;
  const model::SafetensorsFile& shard(std::int64_t index);
  void encode_shard(std::int64_t index, const std::filesystem::path& path);

  FileSystem& files_;
  std::filesystem::path folder_;
  model::AutoencoderKL vae_;
  ImagePool& images_;
  std::vector<std::unique_ptr<model::SafetensorsFile>> shards_;
};

}  // namespace sdtune::train::pretrain
