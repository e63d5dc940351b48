#include "model/weights/stored_weights.h"

#include <cstring>
#include <map>
#include <string>

#include "model/base/error.h"
#include "model/weights/load_into.h"

namespace sdtune::model {

bool same_bits(const torch::Tensor& one, const torch::Tensor& other) {
  if (one.scalar_type() != other.scalar_type() || one.sizes() != other.sizes()) return false;
  const torch::Tensor a = one.contiguous(), b = other.contiguous();
  return a.nbytes() == 0 || std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

void check_stored_weights(const torch::nn::Module& module, const TensorSource& source, KeyFamily family,
                          torch::Dtype dtype) {
  const auto fail = [&](const std::string& name) {
    throw StorageError(source.where() + ": " + name, "read again, it is not what was written",
                       "the disk or its file system is faulty; write to another one");
  };
  const LoadReport report = compare_keys(module, source, family);
  for (const auto* names : {&report.missing, &report.unexpected, &report.wrong_shape, &report.wrong_dtype}) {
    if (!names->empty()) fail(names->front());
  }
  std::map<std::string, torch::Tensor> in_order_of_the_file;
  for (const auto& item : module.named_parameters()) in_order_of_the_file.emplace(item.key(), item.value().detach());
  for (const auto& [name, expected] : in_order_of_the_file) {
    const torch::Tensor stored = fit_projection(source.tensor(name), expected.sizes());
    if (!same_bits(stored, expected.to(torch::kCPU, dtype))) fail(name);
    source.release(name);
  }
}

}  // namespace sdtune::model
