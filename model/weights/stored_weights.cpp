#include "model/weights/stored_weights.h"

#include <cstring>

#include "model/base/error.h"
#include "model/weights/load_into.h"

namespace sdtune::model {
namespace {

// By bytes: a NaN that was written is a NaN that must be read.
bool same_bits(const torch::Tensor& stored, const torch::Tensor& expected) {
  if (stored.scalar_type() != expected.scalar_type() || stored.sizes() != expected.sizes()) return false;
  const torch::Tensor a = stored.contiguous(), b = expected.contiguous();
  return a.nbytes() == 0 || std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

}  // namespace

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
  for (const auto& item : module.named_parameters()) {
    const torch::Tensor stored = fit_projection(source.tensor(item.key()), item.value().sizes());
    if (!same_bits(stored, item.value().detach().to(torch::kCPU, dtype))) fail(item.key());
    source.release(item.key());
  }
}

}  // namespace sdtune::model
