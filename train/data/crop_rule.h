// Which part of an image is trained on, and at what size.
#pragma once

#include <cstdint>
#include <optional>

#include "model/image/bucket.h"
#include "model/image/crop.h"
#include "train/config/data_options.h"

namespace sdtune::train {

struct CropRule {
  std::int64_t resolution = 512;             // px, side of the square where there are no buckets
  std::optional<model::BucketRule> buckets;  // unset: every image becomes the square
  bool random = false;                       // the rectangle lies at random, anew at each step
};

// What the options ask for. `resolution` is the run's; `step` (px) is what a side must be a multiple of for VAE and
// UNet to halve it evenly.
CropRule crop_rule_of(const DataOptions& options, std::int64_t resolution, std::int64_t step);

// The rectangle of an image of that size (px, as seen): in its middle, or around `shown` as far as the image
// reaches. Throws ConfigError when no bucket is allowed.
model::CropPlan plan_crop(std::int64_t width, std::int64_t height, const CropRule& rule,
                          const std::optional<model::ImageBox>& shown = {});

}  // namespace sdtune::train
