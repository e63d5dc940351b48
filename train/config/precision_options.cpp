#include "train/config/precision_options.h"

namespace sdtune::train {

TrainFieldList PrecisionOptions::fields() {
  TrainFieldList list;
  TrainOptionGroup group(list, "Precision");
  group
      .add("mixed_precision", &mixed_precision, Resume::kMustMatch,
           "Number format of the computation; no: float32; default: bf16 on a GPU from compute capability 8.0, fp16 on "
           "an older one, no on a CPU; auto: the fastest, on a CPU by the table of processors (sdtune tune-machine); "
           "both the checkpoint's when resuming.")
      .choices({"default", "auto", "no", "fp16", "bf16"});
  group.add("allow_tf32", &allow_tf32, Resume::kMustMatch,
            "Use TF32 for float32 matrix products and convolutions on Ampere and later GPUs.");
  group
      .add("max_skipped_steps", &max_skipped_steps, Resume::kMayChange,
           "Consecutive steps with non-finite loss or gradients after which the run ends.")
      .unit("steps")
      .at_least(1);
  group.add("half_precision_gradient_sums", &half_precision_gradient_sums, Resume::kMustMatch,
            "With mixed_precision fp16 or bf16, sum the gradients of micro-batches and ranks in that format instead of "
            "float32: 2 bytes less for each trainable parameter, but the result depends on how a batch is split.");
  return list;
}

}  // namespace sdtune::train
