#include "train/data/crop_rule.h"

#include <algorithm>

namespace sdtune::train {

CropRule crop_rule_of(const DataOptions& options, std::int64_t resolution, std::int64_t step) {
  CropRule rule{resolution, std::nullopt, options.crop() == "random"};
  if (!options.enable_bucket) return rule;
  model::BucketRule buckets;
  buckets.resolution = resolution;
  buckets.step = options.bucket_reso_steps.value_or(step);
  const std::int64_t half = resolution / 2 / buckets.step * buckets.step;
  buckets.min_side = options.min_bucket_reso.value_or(std::max(half, buckets.step));
  buckets.max_side = options.max_bucket_reso.value_or(2 * resolution);
  buckets.no_upscale = options.bucket_no_upscale;
  rule.buckets = buckets;
  return rule;
}

model::CropPlan plan_crop(std::int64_t width, std::int64_t height, const CropRule& rule,
                          const std::optional<model::ImageBox>& shown) {
  model::ImageSize size{rule.resolution, rule.resolution};
  if (rule.buckets) size = model::choose_bucket(width, height, *rule.buckets);
  const model::CropPlan plan = model::center_crop(width, height, size.width, size.height);
  return shown ? model::centered_on(plan, width, height, *shown) : plan;
}

}  // namespace sdtune::train
