#include "model/nn/initial_values.h"

namespace sdtune::model {
namespace {

thread_local bool skip_initial_values = false;

}  // namespace

WithoutInitialValues::WithoutInitialValues() : outer_(skip_initial_values) {
  skip_initial_values = true;
}
WithoutInitialValues::~WithoutInitialValues() {
  skip_initial_values = outer_;
}

torch::Tensor uniform_parameter(torch::IntArrayRef shape, double bound) {
  torch::Tensor values = torch::empty(shape, torch::kFloat32);
  return skip_initial_values ? values : values.uniform_(-bound, bound);
}

torch::Tensor normal_parameter(torch::IntArrayRef shape, double std) {
  torch::Tensor values = torch::empty(shape, torch::kFloat32);
  return skip_initial_values ? values : values.normal_(0.0, std);
}

}  // namespace sdtune::model
