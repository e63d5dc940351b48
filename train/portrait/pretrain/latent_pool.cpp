#include "train/portrait/pretrain/latent_pool.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <utility>

#include "model/base/error.h"
#include "model/base/json.h"
#include "model/files/sha256.h"
#include "model/weights/safetensors_writer.h"

namespace sdtune::train::pretrain {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kEncodeBatch = 64;

std::string weights_hash(torch::nn::Module& module) {
  Sha256 hash;
  for (const torch::Tensor& weight : module.parameters()) {
    const torch::Tensor bytes = weight.detach().cpu().contiguous();
    hash.update(std::span(static_cast<const std::byte*>(bytes.data_ptr()), bytes.nbytes()));
  }
  return hash.hex_digest();
}

[[noreturn]] void refuse_latents(const fs::path& folder, const std::string& difference) {
  throw ConfigError(folder.string(), "the latents are of other images (" + difference + ")",
                    "remove it: they are computed again");
}

// What the record says of images must be so now; keys that it lacks contradict nothing.
void check_images(const fs::path& folder, const Json& found, const Json& now) {
  const auto compare = [&](const Json& before, const Json& value, const std::string& name) {
    if (before != value) refuse_latents(folder, name + " was " + before.dump() + ", is now " + value.dump());
  };
  if (found.contains("count")) compare(found["count"], now["count"], "count");
  if (!found.contains("images")) return;
  for (const auto& [key, value] : now["images"].items()) {
    compare(found["images"].is_object() ? found["images"].value(key, Json()) : Json(), value, key);
  }
}

}  // namespace

LatentPool::LatentPool(FileSystem& files, fs::path folder, model::AutoencoderKL vae, ImagePool& images)
    : files_(files),
      folder_(std::move(folder)),
      vae_(std::move(vae)),
      images_(images),
      shards_(static_cast<std::size_t>((images.count() + ImagePool::kShard - 1) / ImagePool::kShard)) {
  const Json now = {{"vae", weights_hash(*vae_)}, {"images", images.description()}, {"count", images.count()}};
  const fs::path record = folder_ / "latents.json";
  const Json found = fs::exists(record) ? parse_json(read_file(record), record.string()) : Json();
  const bool is_of_vae = found.is_object() && found.value("vae", Json()) == now["vae"];
  if (found == now) return;
  if (is_of_vae) {
    check_images(folder_, found, now);
    check_shards();
  } else if (fs::exists(folder_)) {
    files_.remove_tree(folder_);
  }
  files_.create_directories(folder_);
  write_file_atomically(files_, record, now.dump(2) + "\n");
}

std::int64_t LatentPool::images_in(std::int64_t shard) const {
  return std::min(ImagePool::kShard, images_.count() - shard * ImagePool::kShard);
}

fs::path LatentPool::shard_path(std::int64_t index) const {
  return folder_ / (std::to_string(index) + ".safetensors");
}

void LatentPool::check_shards() const {
  for (std::int64_t index = 0; index < std::ssize(shards_); ++index) {
    const fs::path path = shard_path(index);
    if (!fs::exists(path)) continue;
    const std::int64_t there = model::SafetensorsFile(path).tensor("mean").size(0), wanted = images_in(index);
    if (there == wanted) continue;
    refuse_latents(folder_, path.filename().string() + " has " + std::to_string(there) + ", " + std::to_string(wanted) +
                                " are wanted now");
  }
}

void LatentPool::encode_shard(std::int64_t index, const fs::path& path) {
  const torch::NoGradGuard no_grad;
  const torch::Device device = vae_->parameters().front().device();
  const std::int64_t begin = index * ImagePool::kShard, end = begin + images_in(index);
  std::vector<torch::Tensor> means, deviations;
  for (std::int64_t at = begin; at < end; at += kEncodeBatch) {
    std::vector<std::int64_t> batch;
    for (std::int64_t i = at; i < std::min(at + kEncodeBatch, end); ++i) batch.push_back(i);
    const model::Moments moments = vae_->encode(images_.images(batch).to(device));
    means.push_back(moments.mean.to(torch::kHalf).cpu());
    deviations.push_back((0.5 * moments.logvar).exp().to(torch::kHalf).cpu());
  }
  model::write_safetensors(files_, path, {{"mean", torch::cat(means)}, {"deviation", torch::cat(deviations)}});
}

const model::SafetensorsFile& LatentPool::shard(std::int64_t index) {
  std::unique_ptr<model::SafetensorsFile>& file = shards_.at(static_cast<std::size_t>(index));
  if (!file) {
    const fs::path path = shard_path(index);
    if (!fs::exists(path)) encode_shard(index, path);
    file = std::make_unique<model::SafetensorsFile>(path);
  }
  return *file;
}

LatentPool::Posterior LatentPool::posterior(const std::vector<std::int64_t>& indices) {
  std::vector<torch::Tensor> means, deviations;
  for (const std::int64_t index : indices) {
    const model::SafetensorsFile& file = shard(index / ImagePool::kShard);
    means.push_back(file.tensor("mean")[index % ImagePool::kShard]);
    deviations.push_back(file.tensor("deviation")[index % ImagePool::kShard]);
  }
  return {torch::stack(means).to(torch::kFloat32), torch::stack(deviations).to(torch::kFloat32)};
}

double LatentPool::scaling_factor() {
  const torch::Tensor mean = shard(0).tensor("mean").to(torch::kFloat32);
  return 1.0 / mean.std().item<double>();
}

}  // namespace sdtune::train::pretrain
