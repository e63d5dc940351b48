// Stored tensors into a module's parameters, with an account of every key.
#pragma once

#include <torch/nn/module.h>

#include <string>
#include <vector>

#include "model/weights/key_map.h"
#include "model/weights/tensor_source.h"

namespace sdtune::model {

struct LoadReport {
  std::vector<std::string> matched;      // our names
  std::vector<std::string> missing;      // our names that the source lacks
  std::vector<std::string> unexpected;   // stored names that no parameter has
  std::vector<std::string> wrong_shape;  // "name: [stored] instead of [ours]"
  std::vector<std::string> wrong_dtype;  // "stored name: I64": integers and truth values are no weights

  bool complete() const { return missing.empty() && unexpected.empty() && wrong_shape.empty() && wrong_dtype.empty(); }
};

// Compares without copying anything.
[[nodiscard]] LoadReport compare_keys(const torch::nn::Module& module, const TensorSource& source, KeyFamily family);

// Throws WeightError naming `where`, with counts and the first names, unless the report is complete.
void require_complete(const LoadReport& report, const std::string& where);

// Copies (and casts) every tensor into the parameter of its name, whose device and dtype stay. Throws WeightError
// as require_complete does, naming the source; the module is then untouched.
LoadReport load_into(torch::nn::Module& module, const TensorSource& source, KeyFamily family);

}  // namespace sdtune::model
