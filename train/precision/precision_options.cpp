#include "train/precision/precision_options.h"

#include <utility>

namespace sdtune::train {

namespace {

FieldInfo field(std::string name, std::string help) {
  return {.name = std::move(name), .help = std::move(help), .group = "Precision"};
}

}  // namespace

FieldList PrecisionOptions::fields() {
  FieldInfo precision = field("mixed_precision", "Number format of the computation: no is float32.");
  precision.choices = {"no", "fp16", "bf16"};
  FieldInfo skipped = field("max_skipped_steps", "Steps in a row with non-finite loss or gradients that end the run.");
  skipped.unit = "steps";
  skipped.min = 1;
  FieldList list;
  list.push_back({std::move(precision), &mixed_precision});
  list.push_back({field("allow_tf32", "Let float32 products use TF32 on Ampere and later GPUs."), &allow_tf32});
  list.push_back({std::move(skipped), &max_skipped_steps});
  return list;
}

}  // namespace sdtune::train
