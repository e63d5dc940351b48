// A kernel proves itself: before its first use on a device and in a dtype it runs on small inputs beside LibTorch's
// operators. Not every card can be tried beforehand, so each card tries every kernel.
#pragma once

#include <torch/types.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace sdtune::model {

struct KernelUse {
  std::string kernel;  // for people: "group_norm"
  torch::Device device;
  torch::ScalarType dtype;
};

// The worst of what was compared: |ours - theirs| / |theirs|, infinite where ours is not finite.
struct KernelDifference {
  std::string of;  // "gradient of weight"
  double relative = 0;
  double allowed = 0;

  bool is_small() const { return relative <= allowed; }
};

struct ComparedTensor {
  std::string of;
  torch::Tensor ours, theirs;
};

// `allowed` holds for each tensor.
KernelDifference worst_difference(const std::vector<ComparedTensor>& compared, double allowed);

// What rounding to a dtype may differ by where both compute in float32: some units of its last place.
double allowed_difference(torch::ScalarType dtype);

// Whether the kernel may be used there. `compare` runs the first time; it may use autograd and wait for the device. A
// kernel that differs is off from then on, and one warning goes to standard error: kernel, difference, device, driver.
bool is_proven(const KernelUse& use, const std::function<KernelDifference()>& compare);

// The same for kernels that have no substitute of equal numbers: throws DeviceError each time.
void require_proven(const KernelUse& use, const std::function<KernelDifference()>& compare);

// A use that was compared so far, and what was found.
struct KernelProof {
  std::string kernel;
  std::string device;  // "cuda:0"
  torch::ScalarType dtype;
  KernelDifference difference;
};
std::vector<KernelProof> kernel_proofs();

// All kernels prove themselves again.
void forget_proofs();

// Inputs of a proof: the same numbers everywhere, of size about 1, other ones for another `which`. LibTorch's random
// generators stay as they are.
torch::Tensor proof_numbers(torch::IntArrayRef shape, int which, torch::Device device, torch::ScalarType dtype);

}  // namespace sdtune::model
