// Watches for a preemption notice beside the training, on a thread of its own.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "model/base/stop_flag.h"
#include "train/rental/preemption_notice.h"

namespace sdtune::train {

class PreemptionWatch {
 public:
  // Asks at once and then at the source's interval, and requests kPreemption of `stop`, which must outlive this, at a
  // notice; then it is over. A service that does not answer changes nothing.
  PreemptionWatch(std::unique_ptr<PreemptionSource> source, StopFlag& stop);
  ~PreemptionWatch();
  PreemptionWatch(const PreemptionWatch&) = delete;
  PreemptionWatch& operator=(const PreemptionWatch&) = delete;

  std::string notice() const;  // its words; empty: none yet
  // Why the service did not answer, told once; empty: it has not failed, or that was told.
  std::string take_failure();
  double grace() const { return source_->grace(); }
  double interval() const { return source_->interval(); }

 private:
  void watch();

  std::unique_ptr<PreemptionSource> source_;
  StopFlag& stop_;
  std::atomic<bool> cancelled_{false};
  mutable std::mutex mutex_;
  std::string notice_, failure_;  // under the mutex
  bool failed_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace sdtune::train
