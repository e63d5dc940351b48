#include "train/data/photo_masks.h"

#include <ATen/ops/avg_pool2d.h>

#include <algorithm>
#include <utility>

#include "model/core/image_tensor.h"
#include "model/files/sha256.h"
#include "model/image/image_read.h"
#include "model/image/orientation.h"
#include "model/image/resample.h"
#include "train/data/mask_name.h"

namespace sdtune::train {

namespace {

namespace fs = std::filesystem;

std::string size_text(std::int64_t width, std::int64_t height) {
  return std::to_string(width) + " x " + std::to_string(height) + " px";
}

// Grey, of the photo's size.
std::optional<Image> read_mask(const Photo& photo) {
  const std::optional<fs::path> file = mask_of(photo.path);
  if (!file) return model::read_alpha(photo.path);
  Image mask = model::read_grey_on_black(*file);
  if (mask.width != photo.width || mask.height != photo.height) {
    throw DataError(file->string(), "is of another size than its photo (got " + size_text(mask.width, mask.height) +
                                        "; allowed: " + size_text(photo.width, photo.height) + ")");
  }
  return mask;
}

// Whoever paints a mask means a part of the photo.
std::optional<Problem> uniform_mask(const Photo& photo, const Image& mask) {
  const auto [least, most] = std::minmax_element(mask.rgb.begin(), mask.rgb.end());
  const std::string of_file = mask_of(photo.path) ? "has a mask that is " : "has an alpha channel that is ";
  const std::string hint = "white or opaque is the subject, black or transparent the rest";
  if (*least == 255) return Problem{photo.name, of_file + "white everywhere, so all of it counts", hint};
  if (*most == 0) return Problem{photo.name, of_file + "black everywhere, so all of it weighs unmasked_weight", hint};
  return std::nullopt;
}

}  // namespace

std::vector<Problem> mask_problems(const std::vector<Photo>& photos) {
  std::vector<Problem> problems;
  bool has_any = photos.empty();
  for (const Photo& photo : photos) {
    try {
      has_any = read_mask(photo).has_value() || has_any;
    } catch (const Error& error) {
      has_any = true;
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
  }
  if (!has_any) {
    problems.push_back({"masked_loss", "no photo has a mask (got true; allowed: false)",
                        "put NAME.mask.png beside a photo, or cut the subject out into its alpha channel"});
  }
  return problems;
}

std::map<std::string, std::string> mask_file_hashes(const std::vector<Photo>& photos) {
  std::map<std::string, std::string> hashes;
  for (const Photo& photo : photos) {
    if (const std::optional<fs::path> file = mask_of(photo.path)) hashes[photo.name] = sha256_of_file(*file);
  }
  return hashes;
}

PhotoMasks::PhotoMasks(const std::vector<Photo>& photos, const LatentCache& latents, std::int64_t factor)
    : latents_(latents), factor_(factor) {
  for (std::size_t i = 0; i < photos.size(); ++i) {
    std::optional<Image> mask = read_mask(photos[i]);
    if (mask) {
      if (std::optional<Problem> uniform = uniform_mask(photos[i], *mask)) uniform_.push_back(std::move(*uniform));
      BatchSlot slot;
      slot.image = static_cast<std::int64_t>(i);
      const model::CropPlan& plan = latents.plan_of(slot);
      mask = model::resized(*mask, plan.resized_width, plan.resized_height, model::Filter::kBilinear);
    } else {
      without_.push_back(photos[i].name);
    }
    masks_.push_back(std::move(mask));
  }
}

torch::Tensor PhotoMasks::of(const std::vector<BatchSlot>& slots) const {
  std::vector<torch::Tensor> masks;
  for (const BatchSlot& slot : slots) {
    const model::CropPlan& plan = latents_.plan_of(slot);
    const std::optional<Image>& mask = slot.class_image ? std::nullopt : masks_.at(slot.image);
    if (!mask) {
      masks.push_back(torch::ones({1, plan.height / factor_, plan.width / factor_}));
      continue;
    }
    const LatentCache::Placing placing = latents_.place(slot);
    Image part = model::cut(*mask, placing.left, placing.top, plan.width, plan.height);
    if (placing.mirrored) part = model::mirrored(std::move(part));
    const torch::Tensor grey = model::image_to_tensor(part).slice(0, 0, 1).add(1.0).div(2.0);  // [1, H, W]
    masks.push_back(at::avg_pool2d(grey, factor_));
  }
  return torch::stack(masks);
}

}  // namespace sdtune::train
