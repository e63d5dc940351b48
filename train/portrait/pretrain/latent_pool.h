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
  // Shards in the folder that another VAE made are made again. `vae` is float32, without gradients.
  LatentPool(FileSystem& files, std::filesystem::path folder, model::AutoencoderKL vae, ImagePool& images);

  // Means and standard deviations of the posterior, each [B, C, h, w] float32 on the CPU, without the scaling factor.
  struct Posterior {
    torch::Tensor mean, deviation;
  };
  Posterior posterior(const std::vector<std::int64_t>& indices);

  // One over the standard deviation of the first shard's latents: the VAE's scaling_factor.
  double scaling_factor();

 private:
  const model::SafetensorsFile& shard(std::int64_t index);
  void encode_shard(std::int64_t index, const std::filesystem::path& path);

  FileSystem& files_;
  std::filesystem::path folder_;
  model::AutoencoderKL vae_;
  ImagePool& images_;
  std::vector<std::unique_ptr<model::SafetensorsFile>> shards_;
};

}  // namespace sdtune::train::pretrain
