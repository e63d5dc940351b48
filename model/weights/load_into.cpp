#include "model/weights/load_into.h"

#include <fmt/ranges.h>

#include <c10/core/GradMode.h>

#include <algorithm>
#include <map>

#include "model/base/error.h"
#include "model/weights/tensor_text.h"

namespace sdtune::model {
namespace {

constexpr std::size_t kNamesShown = 3;  // of each kind, in an error

struct Match {
  std::string stored;
  torch::Tensor parameter;
};

// Fills the report; returns what to copy where, by our name.
std::map<std::string, Match> match_keys(const torch::nn::Module& module, const TensorSource& source, KeyFamily family,
                                        LoadReport& report) {
  std::map<std::string, torch::Tensor> parameters;
  for (const auto& item : module.named_parameters()) parameters.emplace(item.key(), item.value());
  std::map<std::string, Match> matches;
  for (const std::string& stored : source.names()) {
    const std::string key = our_key(family, stored);
    if (key.empty()) continue;
    const auto parameter = parameters.find(key);
    if (parameter == parameters.end() || matches.contains(key)) {
      report.unexpected.push_back(stored);
      continue;
    }
    const torch::Tensor tensor = fit_projection(source.tensor(stored), parameter->second.sizes());
    matches.emplace(key, Match{stored, parameter->second});
    if (!tensor.is_floating_point()) {
      report.wrong_dtype.push_back(stored + ": " + safetensors_name(tensor.scalar_type()));
      continue;
    }
    if (tensor.sizes() == parameter->second.sizes()) {
      report.matched.push_back(key);
    } else {
      report.wrong_shape.push_back(key + ": " + shape_text(tensor.sizes()) + " instead of " +
                                   shape_text(parameter->second.sizes()));
    }
  }
  for (const auto& [key, parameter] : parameters) {
    if (!matches.contains(key)) report.missing.push_back(key);
  }
  return matches;
}

// Adds "3 tensors missing (a, b, c)" to a list in words; nothing for no names.
void add_count(const std::vector<std::string>& names, const char* what, std::string& text) {
  if (names.empty()) return;
  text += text.empty() ? "" : ", ";
  const std::size_t shown = std::min<std::size_t>(names.size(), kNamesShown);
  text += fmt::format("{} {} ({}{})", names.size(), what, fmt::join(names.data(), names.data() + shown, ", "),
                      names.size() > shown ? ", ..." : "");
}

}  // namespace

LoadReport compare_keys(const torch::nn::Module& module, const TensorSource& source, KeyFamily family) {
  LoadReport report;
  match_keys(module, source, family, report);
  return report;
}

void require_complete(const LoadReport& report, const std::string& where) {
  if (report.complete()) return;
  std::string what;
  add_count(report.missing, "tensors missing", what);
  add_count(report.unexpected, "unexpected", what);
  add_count(report.wrong_shape, "of a wrong shape", what);
  add_count(report.wrong_dtype, "of a dtype that no weight has; allowed: F64, F32, F16, BF16", what);
  throw WeightError(where, "does not fit its config.json: " + what);
}

LoadReport load_into(torch::nn::Module& module, const TensorSource& source, KeyFamily family) {
  LoadReport report;
  const std::map<std::string, Match> matches = match_keys(module, source, family, report);
  require_complete(report, source.where());
  const c10::AutoGradMode no_gradients(false);
  for (const auto& [key, match] : matches) {
    torch::Tensor parameter = match.parameter;
    parameter.copy_(fit_projection(source.tensor(match.stored), parameter.sizes()));
    source.release(match.stored);
  }
  return report;
}

}  // namespace sdtune::model
