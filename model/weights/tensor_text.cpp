#include "model/weights/tensor_text.h"

#include <sstream>

#include "model/base/error.h"
#include "model/weights/safetensors_file.h"

namespace sdtune::model {

std::string shape_text(torch::IntArrayRef shape) {
  std::ostringstream text;
  text << shape;
  return text.str();
}

void require_floating(const torch::Tensor& tensor, const std::string& where, const std::string& name) {
  if (tensor.is_floating_point()) return;
  throw WeightError(where + ": " + name, "is of a dtype that no weight has (got " +
                                             safetensors_name(tensor.scalar_type()) +
                                             "; allowed: F64, F32, F16, BF16)");
}

}  // namespace sdtune::model
