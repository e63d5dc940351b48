#include "train/data/latent_cache.h"

#include <torch/csrc/autograd/grad_mode.h>

#include <algorithm>
#include <utility>

#include "model/core/image_tensor.h"
#include "model/files/file_system.h"
#include "model/files/sha256.h"
#include "model/image/image_read.h"
#include "model/image/orientation.h"

namespace sdtune::train {

namespace {

constexpr const char* kMean = "mean";
constexpr const char* kDeviation = "deviation";

std::vector<model::SampleKey> keys_of(const std::vector<BatchSlot>& slots) {
  std::vector<model::SampleKey> keys;
  keys.reserve(slots.size());
  for (const BatchSlot& slot : slots) keys.push_back(slot.key());
  return keys;
}

model::DrawKey draw_key(std::uint64_t seed, model::Draw purpose, const BatchSlot& slot) {
  return {seed, purpose, slot.step, slot.sample, slot.class_image};
}

// Waits for the device.
bool is_finite(const torch::Tensor& tensor) {
  return !torch::isfinite(tensor).logical_not().any().item<bool>();
}

// A bucket for each size, numbered as the sizes first come.
class BucketNumbers {
 public:
  std::int64_t number_of(const model::CropPlan& plan) {
    const model::ImageSize size{plan.width, plan.height};
    const auto number = std::find(sizes_.begin(), sizes_.end(), size) - sizes_.begin();
    if (number == static_cast<std::ptrdiff_t>(sizes_.size())) sizes_.push_back(size);
    return number;
  }

 private:
  std::vector<model::ImageSize> sizes_;
};

}  // namespace

LatentCache::LatentCache(LatentOptions options, EncodeImages encode, EncodedStore* store, EncodeAgain again)
    : options_(options), encode_(std::move(encode)), store_(store), again_(std::move(again)) {}

bool LatentCache::cached() const {
  return options_.cache && !options_.crop.random;
}

std::string LatentCache::why_not_cached() const {
  if (cached()) return "";
  if (!options_.cache) return "cache_latents is off: each step encodes its images";
  return "the crop is random (center_crop, crop_style): each step cuts anew, so latents cannot be cached";
}

LatentCache::CachedImage LatentCache::load_image(const ImageFile& file) {
  const std::string where = file.path.string();
  CachedImage entry;
  std::string bytes;
  if (file.decoded) {
    entry.width = file.decoded->width;
    entry.height = file.decoded->height;
    entry.plan = file.decoded->plan;
  } else {
    bytes = read_file(file.path);
    const model::ImageInfo info = model::probe_image(bytes, where);
    entry.width = info.seen_width();
    entry.height = info.seen_height();
    entry.plan = plan_crop(entry.width, entry.height, options_.crop, file.shown);
  }
  const bool stored = store_ != nullptr && cached();
  std::string key;
  if (stored) key = store_key(entry, file.decoded ? file.decoded->sha256 : sha256_hex(bytes));
  if (const auto found = stored ? stored_moments(key) : std::nullopt) {
    entry.moments = kept(*found);
    return entry;
  }
  entry.resized = file.decoded ? file.decoded->resized
                               : model::resized(model::decode_image(bytes, where), entry.plan.resized_width,
                                                entry.plan.resized_height, options_.filter);
  if (!cached()) return entry;
  entry.moments = kept(encode_views(entry, where));
  entry.resized = Image();
  if (stored) store_->save(key, {{kMean, entry.moments.mean}, {kDeviation, entry.moments.deviation}});
  return entry;
}

// Unset where there are none, and where an earlier version kept numbers that are not finite.
std::optional<LatentCache::Gaussian> LatentCache::stored_moments(const std::string& key) const {
  const auto found = store_->load(key);
  if (!found) return std::nullopt;
  Gaussian moments;
  for (const auto& [name, tensor] : *found) {
    if (!is_finite(tensor)) return std::nullopt;
    (name == kMean ? moments.mean : moments.deviation) = tensor.to(options_.device);
  }
  return laid_out(moments);
}

LatentCache::Gaussian LatentCache::encode_views(const CachedImage& entry, const std::string& where) {
  const Placing fixed{entry.plan.left, entry.plan.top, false};
  std::vector<torch::Tensor> views = {model::image_to_tensor(cut_out(entry, fixed))};
  if (options_.random_flip) views.push_back(model::image_to_tensor(cut_out(entry, {fixed.left, fixed.top, true})));
  const torch::NoGradGuard no_grad;
  const torch::Tensor images = torch::stack(views);
  Gaussian moments = gaussian(encode_(images));
  if (is_finite(moments.mean) && is_finite(moments.deviation)) return moments;
  if (again_.in_float32) {
    moments = gaussian(again_.in_float32(images));
    if (!has_warned_ && again_.warn) {
      again_.warn({where, "overflows in the autoencoder's number format, so it is encoded in float32",
                   "others that do are not named"});
    }
    has_warned_ = true;
    if (is_finite(moments.mean) && is_finite(moments.deviation)) return moments;
  }
  throw DataError(where, "is encoded to numbers that are not finite, in float32 too",
                  "look at the photo and at the base's VAE: one of them is damaged");
}

std::string LatentCache::store_key(const CachedImage& entry, const std::string& file_hash) const {
  const model::CropPlan& plan = entry.plan;
  std::vector<std::string> inputs = {"picture", file_hash, options_.random_flip ? "both ways" : "as it is"};
  inputs.push_back(std::to_string(static_cast<int>(options_.filter)));
  for (const std::int64_t number :
       {plan.resized_width, plan.resized_height, plan.left, plan.top, plan.width, plan.height}) {
    inputs.push_back(std::to_string(number));
  }
  return store_->key(inputs);
}

void LatentCache::load(const std::vector<ImageFile>& photos, const std::vector<ImageFile>& class_images,
                       const Progress& progress) {
  const auto total = static_cast<std::int64_t>(photos.size() + class_images.size());
  std::int64_t done = 0;
  const auto load_all = [&](const std::vector<ImageFile>& files, std::vector<CachedImage>& images) {
    images.clear();
    for (const ImageFile& file : files) {
      images.push_back(load_image(file));
      if (progress) progress(++done, total);
    }
  };
  load_all(photos, photos_);
  load_all(class_images, class_images_);
}

EpochImages LatentCache::photo_epoch(const std::vector<std::int64_t>& repeats) const {
  EpochImages epoch;
  BucketNumbers numbers;
  for (std::size_t i = 0; i < photos_.size(); ++i) {
    const auto times = static_cast<std::size_t>(repeats.at(i));
    epoch.images.insert(epoch.images.end(), times, static_cast<std::int64_t>(i));
    epoch.buckets.insert(epoch.buckets.end(), times, numbers.number_of(photos_[i].plan));
  }
  return epoch;
}

EpochImages LatentCache::class_epoch() const {
  EpochImages epoch = EpochImages::once(static_cast<std::int64_t>(class_images_.size()));
  BucketNumbers numbers;
  for (std::size_t i = 0; i < class_images_.size(); ++i) epoch.buckets[i] = numbers.number_of(class_images_[i].plan);
  return epoch;
}

model::ImageSize LatentCache::size_of(const BatchSlot& slot) const {
  const model::CropPlan& plan = image_of(slot).plan;
  return {plan.width, plan.height};
}

const LatentCache::CachedImage& LatentCache::image_of(const BatchSlot& slot) const {
  return (slot.class_image ? class_images_ : photos_).at(static_cast<std::size_t>(slot.image));
}

LatentCache::Placing LatentCache::place(const BatchSlot& slot) const {
  const model::CropPlan& plan = image_of(slot).plan;
  Placing placing{plan.left, plan.top, false};
  if (options_.crop.random) {
    const std::int64_t places = plan.free_columns() * plan.free_rows();
    const std::int64_t place = model::draw_integer(draw_key(options_.seed, model::Draw::kCrop, slot), places);
    placing.left = place % plan.free_columns();
    placing.top = place / plan.free_columns();
  }
  if (options_.random_flip) {
    placing.mirrored = model::draw_uniform(draw_key(options_.seed, model::Draw::kFlip, slot)) < 0.5;
  }
  return placing;
}

Image LatentCache::cut_out(const CachedImage& entry, const Placing& placing) {
  const model::CropPlan& plan = entry.plan;
  Image image = model::cut(entry.resized, placing.left, placing.top, plan.width, plan.height);
  return placing.mirrored ? model::mirrored(std::move(image)) : image;
}

LatentCache::Gaussian LatentCache::gaussian(const model::Moments& moments) const {
  return laid_out({moments.mean.to(torch::kFloat32), moments.logvar.to(torch::kFloat32).mul(0.5).exp()});
}

LatentCache::Gaussian LatentCache::laid_out(Gaussian moments) const {
  const torch::MemoryFormat format = options_.memory_format;
  if (format == torch::MemoryFormat::Contiguous) return moments;
  return {moments.mean.contiguous(format), moments.deviation.contiguous(format)};
}

LatentCache::Gaussian LatentCache::kept(const Gaussian& moments) {
  return {blocks_.copy(moments.mean), blocks_.copy(moments.deviation)};
}

LatentCache::Gaussian LatentCache::cached_moments(const std::vector<BatchSlot>& slots) const {
  std::vector<torch::Tensor> means, deviations;
  for (const BatchSlot& slot : slots) {
    const CachedImage& entry = image_of(slot);
    const std::int64_t row = place(slot).mirrored ? 1 : 0;
    means.push_back(entry.moments.mean.narrow(0, row, 1));
    deviations.push_back(entry.moments.deviation.narrow(0, row, 1));
  }
  return {torch::cat(means), torch::cat(deviations)};
}

LatentCache::Gaussian LatentCache::fresh_moments(const std::vector<BatchSlot>& slots) const {
  std::vector<torch::Tensor> views;
  for (const BatchSlot& slot : slots) views.push_back(model::image_to_tensor(cut_out(image_of(slot), place(slot))));
  return gaussian(encode_(torch::stack(views)));
}

torch::Tensor LatentCache::latents(const std::vector<BatchSlot>& slots) {
  const torch::NoGradGuard no_grad;
  const Gaussian moments = cached() ? cached_moments(slots) : fresh_moments(slots);
  const torch::Tensor& mean = moments.mean;
  const torch::Tensor noise = model::draw_normal_batch(options_.seed, model::Draw::kLatent, keys_of(slots),
                                                       mean.sizes().slice(1), mean.device());
  return mean.addcmul(moments.deviation, noise).sub(options_.shift_factor).mul(options_.scaling_factor);
}

torch::Tensor LatentCache::time_ids(const std::vector<BatchSlot>& slots) const {
  torch::Tensor ids = torch::empty({static_cast<std::int64_t>(slots.size()), 6}, torch::kFloat32);
  auto row = ids.accessor<float, 2>();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const CachedImage& entry = image_of(slots[i]);
    const Placing placing = place(slots[i]);
    const model::CropPlan& plan = entry.plan;
    // A mirrored crop is a crop of the mirrored image.
    const std::int64_t left = placing.mirrored ? plan.resized_width - plan.width - placing.left : placing.left;
    const std::int64_t values[] = {entry.height, entry.width, placing.top, left, plan.height, plan.width};
    for (std::int64_t k = 0; k < 6; ++k) row[static_cast<std::int64_t>(i)][k] = static_cast<float>(values[k]);
  }
  return ids;
}

std::int64_t LatentCache::memory_bytes() const {
  std::int64_t bytes = 0;
  for (const std::vector<CachedImage>* images : {&photos_, &class_images_}) {
    for (const CachedImage& entry : *images) {
      bytes += static_cast<std::int64_t>(entry.resized.rgb.size());
      const Gaussian& moments = entry.moments;
      if (moments.mean.defined()) {
        bytes += static_cast<std::int64_t>(moments.mean.nbytes() + moments.deviation.nbytes());
      }
    }
  }
  return bytes;
}

}  // namespace sdtune::train
