#include "train/parameters/starting_values.h"

#include <algorithm>
#include <map>
#include <string>

namespace sdtune::train {

std::vector<torch::Tensor> starting_values(const model::ModelBundle& bundle,
                                           const std::vector<ModuleParameter>& trained) {
  std::vector<torch::Tensor> values;
  for (const ModuleParameter& parameter : trained) values.push_back(parameter.weight.detach());
  const auto is_exact = [](const torch::Tensor& value) { return value.scalar_type() == torch::kFloat32; };
  if (std::all_of(values.begin(), values.end(), is_exact)) return values;
  const model::ModelBundle files = model::load_bundle(bundle.folder, torch::kFloat32, torch::kCPU);
  std::map<std::string, torch::Tensor> exact;
  for (const auto& all :
       {trainable_parameters(files, /*train_text_encoder=*/true), fixed_parameters(files, true, {})}) {
    for (const ModuleParameter& parameter : all) exact.emplace(parameter.name, parameter.weight.detach());
  }
  for (std::size_t i = 0; i < trained.size(); ++i) {
    if (!is_exact(values[i])) values[i] = exact.at(trained[i].name);
  }
  return values;
}

}  // namespace sdtune::train
