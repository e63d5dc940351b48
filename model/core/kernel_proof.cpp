#include "model/core/kernel_proof.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <mutex>
#include <tuple>

#include "model/base/error.h"
#include "model/core/device.h"

namespace sdtune::model {

namespace {

using UseKey = std::tuple<std::string, std::string, torch::ScalarType>;

std::mutex proofs_mutex;
std::map<UseKey, KernelDifference> proofs;

std::string number_text(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2g", number);
  return text;
}

std::string fault_text(const KernelUse& use, const KernelDifference& difference) {
  return "our kernel " + use.kernel + " (" + dtype_name(use.dtype) + ") differs from LibTorch's operators on " +
         describe_device(use.device) + ": " + difference.of + " by " + number_text(difference.relative) +
         " (allowed: " + number_text(difference.allowed) + ")";
}

// What is known of this use, and whether it was found out just now.
std::pair<KernelDifference, bool> proof_of(const KernelUse& use, const std::function<KernelDifference()>& compare) {
  const UseKey key(use.kernel, use.device.str(), use.dtype);
  {
    const std::lock_guard lock(proofs_mutex);
    const auto found = proofs.find(key);
    if (found != proofs.end()) return {found->second, false};
  }
  const c10::InferenceMode normal(false);
  const at::AutoGradMode with_gradients(true);
  const KernelDifference difference = compare();
  const std::lock_guard lock(proofs_mutex);
  const auto [place, is_new] = proofs.emplace(key, difference);
  return {place->second, is_new};
}

}  // namespace

KernelDifference worst_difference(const std::vector<ComparedTensor>& compared, double allowed) {
  KernelDifference worst{"", -1, allowed};
  for (const ComparedTensor& one : compared) {
    const torch::Tensor theirs = one.theirs.detach().to(torch::kCPU, torch::kFloat64);
    const torch::Tensor ours = one.ours.detach().to(torch::kCPU, torch::kFloat64);
    const double norm = std::max(theirs.norm().item<double>(), std::numeric_limits<double>::min());
    const double relative = (ours - theirs).norm().item<double>() / norm;
    const double error = std::isfinite(relative) ? relative : std::numeric_limits<double>::infinity();
    if (error > worst.relative) worst = {one.of, error, allowed};
  }
  return worst;
}

double allowed_difference(torch::ScalarType dtype) {
  if (dtype == torch::kBFloat16) return 1e-2;
  return dtype == torch::kFloat16 ? 2e-3 : 2e-5;
}

bool is_proven(const KernelUse& use, const std::function<KernelDifference()>& compare) {
  const auto [difference, is_new] = proof_of(use, compare);
  if (difference.is_small()) return true;
  if (is_new) {
    const std::string line = fault_text(use, difference) + "; LibTorch's operators are used in its place";
    std::fprintf(stderr, "sdtune: warning: %s\n", line.c_str());
  }
  return false;
}

void require_proven(const KernelUse& use, const std::function<KernelDifference()>& compare) {
  const KernelDifference difference = proof_of(use, compare).first;
  if (difference.is_small()) return;
  throw DeviceError("device", fault_text(use, difference),
                    "SDTUNE_KERNELS=library leaves all to LibTorch's operators; another card or driver may do better");
}

std::vector<KernelProof> kernel_proofs() {
  const std::lock_guard lock(proofs_mutex);
  std::vector<KernelProof> all;
  for (const auto& [key, difference] : proofs) {
    all.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), difference});
  }
  return all;
}

void forget_proofs() {
  const std::lock_guard lock(proofs_mutex);
  proofs.clear();
}

torch::Tensor proof_numbers(torch::IntArrayRef shape, int which, torch::Device device, torch::ScalarType dtype) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  const torch::Tensor places = torch::arange(count, torch::kFloat64);
  return ((places * (1.1 + 0.37 * which) + which).sin() * 1.4 + 0.2).to(dtype).reshape(shape).to(device);
}

}  // namespace sdtune::model
