#include "train/prove/record_comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace sdtune::train {

namespace {

// What a step in a number format may be away from the same in float32 on the CPU. The bundled base on a CPU gives 5e-7,
// 8e-6, 8e-5 and 2e-3 in float32 (micro-batches against the whole batch), and 4e-4, 3e-3, 6e-2 in bfloat16; the bars
// are four times that and more. float16 rounds eight times finer than bfloat16.
struct Bars {
  double loss, norm, gradient, inputs;
  std::optional<double> change;
};

const char* const kSource = "at least four times what the format gives on the bundled base on a CPU";

Bars bars_of(const std::string& dtype) {
  if (dtype == "bfloat16") return {2e-2, 3e-2, 0.25, 3e-2, std::nullopt};
  if (dtype == "float16") return {5e-3, 1e-2, 4e-2, 1e-2, std::nullopt};
  return {1e-4, 1e-4, 1e-3, 1e-3, 0.1};
}

// Every tensor whose name has the start, of both records, as one vector each.
double difference_of_all(const StepRecord& record, const StepRecord& reference, const std::string& start) {
  std::vector<torch::Tensor> got, want;
  for (const auto& [name, tensor] : reference.tensors) {
    if (name.rfind(start, 0) != 0) continue;
    const torch::Tensor* ours = record.find(name);
    if (ours == nullptr || ours->sizes() != tensor.sizes()) return std::numeric_limits<double>::infinity();
    got.push_back(ours->to(torch::kFloat64).flatten());
    want.push_back(tensor.to(torch::kFloat64).flatten());
  }
  if (want.empty()) return std::numeric_limits<double>::infinity();
  return relative_difference(torch::cat(got), torch::cat(want));
}

double worst_of(const StepRecord& record, const StepRecord& reference, const std::string& name) {
  const torch::Tensor *got = record.find(name), *want = reference.find(name);
  if (got == nullptr || want == nullptr || got->sizes() != want->sizes()) {
    return std::numeric_limits<double>::infinity();
  }
  double worst = 0;
  for (std::int64_t i = 0; i < want->numel(); ++i) worst = std::max(worst, relative_difference((*got)[i], (*want)[i]));
  return worst;
}

double largest(const StepRecord& record, const std::string& name) {
  const torch::Tensor* found = record.find(name);
  return found == nullptr ? std::numeric_limits<double>::infinity() : found->max().item<double>();
}

}  // namespace

double relative_difference(const torch::Tensor& got, const torch::Tensor& want) {
  const torch::Tensor ours = got.to(torch::kFloat64), theirs = want.to(torch::kFloat64);
  const double norm = std::max(theirs.norm().item<double>(), std::numeric_limits<double>::min());
  const double relative = (ours - theirs).norm().item<double>() / norm;
  return std::isfinite(relative) ? relative : std::numeric_limits<double>::infinity();
}

std::vector<Check> compare_records(const StepRecord& record, const StepRecord& reference, const std::string& dtype) {
  const Bars bars = bars_of(dtype);
  return {{"loss", worst_of(record, reference, "losses"), {}, bars.loss, kSource},
          {"gradient norm", worst_of(record, reference, "norms"), {}, bars.norm, kSource},
          {"gradient", difference_of_all(record, reference, "gradient."), {}, bars.gradient, kSource},
          {"change of the weights",
           difference_of_all(record, reference, "change."),
           {},
           bars.change,
           bars.change ? kSource : ""}};
}

std::vector<Check> check_update(const StepRecord& record) {
  return {{"update against AdamW's statement",
           largest(record, "update_errors"),
           {},
           1e-2,
           "a float32 weight of size 1 rounds to 6e-8, and a step is 1e-5"},
          {"stated norm against the gradients",
           largest(record, "norm_errors"),
           {},
           1e-5,
           "float32 rounds to 6e-8; the sum is in double"}};
}

std::vector<Check> check_inputs(const InputErrors& errors, const std::string& dtype) {
  const double allowed = bars_of(dtype).inputs;
  return {{"latents", errors.latents, {}, allowed, kSource},
          {"prompt embeddings", errors.context, {}, allowed, kSource},
          {"noise", errors.noise, {}, 0, "a counter-based number is the same in every bit"},
          {"timesteps that differ", errors.same_timesteps ? 0.0 : 1.0, {}, 0, "as for the noise"}};
}

}  // namespace sdtune::train
