#include "model/core/device_copy.h"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace sdtune::model {

namespace {

c10::Stream current_stream(torch::Device device) {
  return c10::impl::VirtualGuardImpl(torch::kCUDA).getStream(device);
}

}  // namespace

torch::Tensor copy_to_device(const torch::Tensor& host, torch::Device device) {
  const bool crosses = host.is_cpu() && device.is_cuda();
  return crosses ? host.pin_memory().to(device, /*non_blocking=*/true) : host.to(device);
}

torch::Tensor keep_on_host(const torch::Tensor& source) {
  const torch::TensorOptions options = source.options().device(torch::kCPU).pinned_memory(source.is_cuda());
  return torch::empty_like(source, options, torch::MemoryFormat::Preserve).copy_(source.detach());
}

HostCopy::HostCopy(const torch::Tensor& source) {
  if (!source.is_cuda()) {
    copy_ = source.detach().to(torch::kCPU);
    return;
  }
  copy_ = torch::empty(source.sizes(), source.options().device(torch::kCPU).pinned_memory(true));
  copy_.copy_(source.detach(), /*non_blocking=*/true);
  copied_.emplace(c10::kCUDA, c10::EventFlag::BACKEND_DEFAULT);  // with its time
  copied_->record(current_stream(source.device()));
}

bool HostCopy::ready() const {
  return !copied_ || copied_->query();
}

std::optional<double> HostCopy::seconds_after(const HostCopy& earlier) const {
  if (!copied_ || !earlier.copied_) return std::nullopt;
  return earlier.copied_->elapsedTime(*copied_) / 1000.0;
}

const torch::Tensor& HostCopy::wait() const {
  if (copied_) copied_->synchronize();
  return copy_;
}

QueuedWork::QueuedWork(torch::Device device) {
  if (!device.is_cuda()) return;
  done_.emplace(c10::kCUDA);
  done_->record(current_stream(device));
}

void QueuedWork::wait() const {
  if (done_) done_->synchronize();
}

}  // namespace sdtune::model
