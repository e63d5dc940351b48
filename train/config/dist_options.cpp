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
  return list;
}

}  // namespace sdtune::train
