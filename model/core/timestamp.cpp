#include "model/core/timestamp.h"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace sdtune::model {

Timestamp::Timestamp(torch::Device device) : host_(std::chrono::steady_clock::now()) {
  if (device.is_cpu() || device.is_meta()) return;                  // the meta device computes nothing
  passed_.emplace(device.type(), c10::EventFlag::BACKEND_DEFAULT);  // with its time
  passed_->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

std::optional<double> Timestamp::seconds_after(const Timestamp& earlier) const {
  if (!passed_ || !earlier.passed_) return std::chrono::duration<double>(host_ - earlier.host_).count();
  if (!passed_->query() || !earlier.passed_->query()) return std::nullopt;
  return earlier.passed_->elapsedTime(*passed_) / 1000.0;
}

}  // namespace sdtune::model
