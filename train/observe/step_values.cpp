#include "train/observe/step_values.h"

namespace sdtune::train {

std::vector<std::pair<std::string, double>> step_values(const StepEvent& event) {
  std::vector<std::pair<std::string, double>> values = {{"loss", event.loss}, {"loss_instance", event.loss_instance}};
  if (event.loss_prior) values.emplace_back("loss_prior", *event.loss_prior);
  values.emplace_back("lr", event.lr);
  if (event.text_encoder_lr) values.emplace_back("text_encoder_lr", *event.text_encoder_lr);
  values.emplace_back("grad_norm", event.grad_norm);
  if (event.loss_scale) values.emplace_back("loss_scale", *event.loss_scale);
  values.emplace_back("images_per_s", event.images_per_s);
  values.emplace_back("max_memory_bytes", static_cast<double>(event.max_memory_bytes));
  return values;
}

}  // namespace sdtune::train
