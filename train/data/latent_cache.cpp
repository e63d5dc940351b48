#include "train/data/latent_cache.h"

#include <torch/csrc/autograd/grad_mode.h>

#include <algorithm>
#include <utility>

#include "model/base/file_system.h"
#include "model/base/sha256.h"
#include "model/image/image_read.h"
#include "model/image/orientation.h"
#include "train/data/picture_tensor.h"

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

// A bucket for each size, numbered as the sizes first come.
class BucketNumbers {
 public:
  std::int64_t number_of(const model::CropPlan& plan) {
    const model::PictureSize size{plan.width, plan.height};
    const auto number = std::find(sizes_.begin(), sizes_.end(), size) - sizes_.begin();
    if (number == static_cast<std::ptrdiff_t>(sizes_.size())) sizes_.push_back(size);
    return number;
  }

 private:
  std::vector<model::PictureSize> sizes_;
};

}  // namespace

LatentCache::LatentCache(LatentOptions options, EncodePictures encode, EncodedStore* store)
    : options_(options), encode_(std::move(encode)), store_(store) {}

bool LatentCache::cached() const {
  return options_.cache && !options_.crop.random;
}

std::string LatentCache::why_not_cached() const {
  if (cached()) return "";
  if (!options_.cache) return "cache_latents is off: each step encodes its pictures";
  return "the crop is random (center_crop, crop_style): each step cuts anew, so latents cannot be cached";
}

LatentCache::Picture LatentCache::load_picture(const PictureFile& file) {
  const std::string bytes = read_file(file.path), where = file.path.string();
  const model::ImageInfo info = model::probe_image(bytes, where);
  Picture picture;
  picture.width = info.seen_width();
  picture.height = info.seen_height();
  picture.plan = plan_crop(picture.width, picture.height, options_.crop, file.shown);
  const bool stored = store_ != nullptr && cached();
  const std::string key = stored ? store_key(picture, bytes) : "";
  if (const auto found = stored ? store_->load(key) : std::nullopt) {
    for (const auto& [name, tensor] : *found) {
      (name == kMean ? picture.moments.mean : picture.moments.deviation) = tensor.to(options_.device);
    }
    return picture;
  }
  const Image image = model::decode_image(bytes, where);
  picture.resized = model::resized(image, picture.plan.resized_width, picture.plan.resized_height, options_.filter);
  if (!cached()) return picture;
  picture.moments = encode_views(picture);
  picture.resized = Image();
  if (stored) store_->save(key, {{kMean, picture.moments.mean}, {kDeviation, picture.moments.deviation}});
  return picture;
}

LatentCache::Gaussian LatentCache::encode_views(const Picture& picture) const {
  const Placing fixed{picture.plan.left, picture.plan.top, false};
  std::vector<torch::Tensor> views = {picture_to_tensor(cut_out(picture, fixed))};
  if (options_.random_flip) views.push_back(picture_to_tensor(cut_out(picture, {fixed.left, fixed.top, true})));
  const torch::NoGradGuard no_grad;
  return gaussian(encode_(torch::stack(views)));
}

std::string LatentCache::store_key(const Picture& picture, const std::string& bytes) const {
  const model::CropPlan& plan = picture.plan;
  std::vector<std::string> inputs = {"picture", sha256_hex(bytes), options_.random_flip ? "both ways" : "as it is"};
  inputs.push_back(std::to_string(static_cast<int>(options_.filter)));
  for (const std::int64_t number :
       {plan.resized_width, plan.resized_height, plan.left, plan.top, plan.width, plan.height}) {
    inputs.push_back(std::to_string(number));
  }
  return store_->key(inputs);
}

void LatentCache::load(const std::vector<PictureFile>& photos, const std::vector<PictureFile>& class_images,
                       const Progress& progress) {
  const auto total = static_cast<std::int64_t>(photos.size() + class_images.size());
  std::int64_t done = 0;
  const auto load_all = [&](const std::vector<PictureFile>& files, std::vector<Picture>& pictures) {
    pictures.clear();
    for (const PictureFile& file : files) {
      pictures.push_back(load_picture(file));
      if (progress) progress(++done, total);
    }
  };
  load_all(photos, photos_);
  load_all(class_images, class_images_);
}

EpochPictures LatentCache::photo_epoch(const std::vector<std::int64_t>& repeats) const {
  EpochPictures epoch;
  BucketNumbers numbers;
  for (std::size_t i = 0; i < photos_.size(); ++i) {
    const auto times = static_cast<std::size_t>(repeats.at(i));
    epoch.pictures.insert(epoch.pictures.end(), times, static_cast<std::int64_t>(i));
    epoch.buckets.insert(epoch.buckets.end(), times, numbers.number_of(photos_[i].plan));
  }
  return epoch;
}

EpochPictures LatentCache::class_epoch() const {
  EpochPictures epoch = EpochPictures::once(static_cast<std::int64_t>(class_images_.size()));
  BucketNumbers numbers;
  for (std::size_t i = 0; i < class_images_.size(); ++i) epoch.buckets[i] = numbers.number_of(class_images_[i].plan);
  return epoch;
}

model::PictureSize LatentCache::size_of(const BatchSlot& slot) const {
  const model::CropPlan& plan = picture_of(slot).plan;
  return {plan.width, plan.height};
}

const LatentCache::Picture& LatentCache::picture_of(const BatchSlot& slot) const {
  return (slot.class_image ? class_images_ : photos_).at(static_cast<std::size_t>(slot.picture));
}

LatentCache::Placing LatentCache::place(const BatchSlot& slot) const {
  const model::CropPlan& plan = picture_of(slot).plan;
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

Image LatentCache::cut_out(const Picture& picture, const Placing& placing) {
  const model::CropPlan& plan = picture.plan;
  Image image = model::cut(picture.resized, placing.left, placing.top, plan.width, plan.height);
  return placing.mirrored ? model::mirrored(std::move(image)) : image;
}

LatentCache::Gaussian LatentCache::gaussian(const model::Moments& moments) {
  return {moments.mean.to(torch::kFloat32), moments.logvar.to(torch::kFloat32).mul(0.5).exp()};
}

LatentCache::Gaussian LatentCache::cached_moments(const std::vector<BatchSlot>& slots) const {
  std::vector<torch::Tensor> means, deviations;
  for (const BatchSlot& slot : slots) {
    const Picture& picture = picture_of(slot);
    const std::int64_t row = place(slot).mirrored ? 1 : 0;
    means.push_back(picture.moments.mean[row]);
    deviations.push_back(picture.moments.deviation[row]);
  }
  return {torch::stack(means), torch::stack(deviations)};
}

LatentCache::Gaussian LatentCache::fresh_moments(const std::vector<BatchSlot>& slots) const {
  std::vector<torch::Tensor> views;
  for (const BatchSlot& slot : slots) views.push_back(picture_to_tensor(cut_out(picture_of(slot), place(slot))));
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
    const Picture& picture = picture_of(slots[i]);
    const Placing placing = place(slots[i]);
    const model::CropPlan& plan = picture.plan;
    // A mirrored crop is a crop of the mirrored picture.
    const std::int64_t left = placing.mirrored ? plan.resized_width - plan.width - placing.left : placing.left;
    const std::int64_t values[] = {picture.height, picture.width, placing.top, left, plan.height, plan.width};
    for (std::int64_t k = 0; k < 6; ++k) row[static_cast<std::int64_t>(i)][k] = static_cast<float>(values[k]);
  }
  return ids;
}

std::int64_t LatentCache::memory_bytes() const {
  std::int64_t bytes = 0;
  for (const std::vector<Picture>* pictures : {&photos_, &class_images_}) {
    for (const Picture& picture : *pictures) {
      bytes += static_cast<std::int64_t>(picture.resized.rgb.size());
      const Gaussian& moments = picture.moments;
      if (moments.mean.defined()) {
        bytes += static_cast<std::int64_t>(moments.mean.nbytes() + moments.deviation.nbytes());
      }
    }
  }
  return bytes;
}

}  // namespace sdtune::train
