#include "train/prepare/resting_parts.h"

#include "model/core/device_copy.h"

namespace sdtune::train {

RestingParts::RestingParts(const std::vector<std::shared_ptr<torch::nn::Module>>& parts, torch::Device device)
    : device_(device) {
  for (const std::shared_ptr<torch::nn::Module>& part : parts) {
    for (const auto& tensors : {part->parameters(), part->buffers()}) {
      for (const torch::Tensor& tensor : tensors) weights_.push_back({tensor, model::keep_on_host(tensor)});
    }
  }
  move_to_host();
}

void RestingParts::move_to_device() {
  try {
    for (const auto& [weight, host] : weights_) torch::Tensor(weight).set_data(host.to(device_, /*non_blocking=*/true));
  } catch (...) {  // memory ran out
    move_to_host();
    throw;
  }
}

void RestingParts::move_to_host() {
  for (const auto& [weight, host] : weights_) torch::Tensor(weight).set_data(host);
}

RestingParts::OnDevice::OnDevice(RestingParts* parts) : parts_(parts) {
  if (parts_ == nullptr) return;
  if (parts_->users_ == 0) parts_->move_to_device();
  ++parts_->users_;
}

RestingParts::OnDevice::~OnDevice() {
  if (parts_ != nullptr && --parts_->users_ == 0) parts_->move_to_host();
}

}  // namespace sdtune::train
