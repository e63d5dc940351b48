#include "train/data/latent_cache.h"

#include <torch/csrc/autograd/grad_mode.h>

#include <utility>

#include "model/image/image_read.h"
#include "model/image/orientation.h"
#include "train/data/picture_tensor.h"

namespace sdtune::train {

namespace {

std::vector<model::SampleKey> keys_of(const std::vector<BatchSlot>& slots) {
  std::vector<model::SampleKey> keys;
  keys.reserve(slots.size());
  for (const BatchSlot& slot : slots) keys.push_back(slot.key());
  return keys;
}

model::DrawKey draw_key(std::uint64_t seed, model::Draw purpose, const BatchSlot& slot) {
  return {seed, purpose, slot.step, slot.sample, slot.class_image};
}

}  // namespace

LatentCache::LatentCache(LatentOptions options, EncodePictures encode)
    : options_(options), encode_(std::move(encode)) {}

bool LatentCache::cached() const {
  return options_.cache && options_.center_crop;
}

std::string LatentCache::why_not_cached() const {
  if (cached()) return "";
  if (!options_.cache) return "cache_latents is off: each step encodes its pictures";
  return "center_crop is off: each step crops at random, so latents cannot be cached";
}

LatentCache::Picture LatentCache::load_picture(const std::filesystem::path& file) {
  Picture picture;
  Image image = model::read_image(file);
  picture.width = image.width;
  picture.height = image.height;
  picture.plan = model::center_crop(image.width, image.height, options_.resolution);
  picture.resized = model::resized(image, picture.plan.resized_width, picture.plan.resized_height, options_.filter);
  if (!cached()) return picture;
  const Placing center{picture.plan.left, picture.plan.top, false};
  std::vector<torch::Tensor> squares = {picture_to_tensor(square(picture, center))};
  if (options_.random_flip) {
    squares.push_back(picture_to_tensor(square(picture, {center.left, center.top, true})));
  }
  const torch::NoGradGuard no_grad;
  picture.moments = gaussian(encode_(torch::stack(squares)));
  picture.resized = Image();
  return picture;
}

void LatentCache::load(const std::vector<std::filesystem::path>& photos,
                       const std::vector<std::filesystem::path>& class_images, const Progress& progress) {
  const auto total = static_cast<std::int64_t>(photos.size() + class_images.size());
  std::int64_t done = 0;
  const auto load_all = [&](const std::vector<std::filesystem::path>& files, std::vector<Picture>& pictures) {
    pictures.clear();
    for (const std::filesystem::path& file : files) {
      pictures.push_back(load_picture(file));
      if (progress) progress(++done, total);
    }
  };
  load_all(photos, photos_);
  load_all(class_images, class_images_);
}

const LatentCache::Picture& LatentCache::picture_of(const BatchSlot& slot) const {
  return (slot.class_image ? class_images_ : photos_).at(static_cast<std::size_t>(slot.picture));
}

LatentCache::Placing LatentCache::place(const BatchSlot& slot) const {
  const model::CropPlan& plan = picture_of(slot).plan;
  Placing placing{plan.left, plan.top, false};
  if (!options_.center_crop) {
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

Image LatentCache::square(const Picture& picture, const Placing& placing) const {
  Image image = model::cut_square(picture.resized, placing.left, placing.top, options_.resolution);
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
  std::vector<torch::Tensor> squares;
  for (const BatchSlot& slot : slots) squares.push_back(picture_to_tensor(square(picture_of(slot), place(slot))));
  return gaussian(encode_(torch::stack(squares)));
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
    // A mirrored square is a crop of the mirrored picture.
    const std::int64_t left =
        placing.mirrored ? picture.plan.resized_width - options_.resolution - placing.left : placing.left;
    const std::int64_t values[] = {picture.height, picture.width,       placing.top,
                                   left,           options_.resolution, options_.resolution};
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
