#include "train/prepare/resting_parts.h"

#include <utility>

namespace sdtune::train {

RestingParts::RestingParts(std::vector<std::shared_ptr<torch::nn::Module>> parts, torch::Device device,
                           torch::Device resting_place)
    : parts_(std::move(parts)), device_(device), resting_place_(resting_place) {
  move_to(resting_place_);
}

void RestingParts::move_to(torch::Device place) {
  for (const std::shared_ptr<torch::nn::Module>& part : parts_) part->to(place);
}

RestingParts::OnDevice::OnDevice(RestingParts* parts) : parts_(parts) {
  if (parts_ != nullptr && parts_->users_++ == 0) parts_->move_to(parts_->device_);
}

RestingParts::OnDevice::~OnDevice() {
  if (parts_ != nullptr && --parts_->users_ == 0) parts_->move_to(parts_->resting_place_);
}

}  // namespace sdtune::train
