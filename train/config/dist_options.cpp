#include "train/config/dist_options.h"

namespace sdtune::train {

TrainFieldList DistOptions::fields() {
  constexpr double kDay = 86400;  // s
  TrainFieldList list;
  TrainOptionGroup group(list, "Distributed training");
  group
      .add("peer_timeout", &peer_timeout, Resume::kMayChange,
           "Time that a rank waits for the others before the run ends (exit code 138).")
      .unit("s")
      .range(1, kDay);
  group.add("start_timeout", &start_timeout, Resume::kMayChange, "Time that a rank waits for the others to start.")
      .unit("s")
      .range(1, kDay);
  group
      .add(
          "shard", &shard, Resume::kMayChange,
          "What is shared out among several ranks, by whole parameters: optimizer: optimizer states, float32 masters "
          "and the EMA (ZeRO stage 1); gradients: gradients too (stage 2), so that each micro-batch is summed over the "
          "ranks; none: every rank keeps all of it (DDP).")
      .choices({"none", "optimizer", "gradients"});
  group
      .add("comm_hook", &comm_hook, Resume::kMustMatch,
           "Number format in which ranks send gradients; no: the one that they are summed in, float32; bf16: half the "
           "bytes, and gradients of other ranks are rounded.")
      .choices({"no", "bf16"});
  return list;
}

}  // namespace sdtune::train
