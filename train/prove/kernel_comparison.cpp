#include "train/prove/kernel_comparison.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <limits>
#include <set>
#include <utility>

#include "model/core/device.h"
#include "model/core/kernel_proof.h"
#include "model/core/random.h"
#include "model/kernels/geglu.h"
#include "model/kernels/group_norm.h"
#include "train/optim/clip_grad.h"
#include "train/optim/optimizer.h"
#include "train/prove/adamw_statement.h"
#include "train/prove/record_comparison.h"

namespace sdtune::train {

namespace {

constexpr const char* kUnitsOfLastPlace = "some units of the format's last place (model/core/kernel_proof.h)";

using Tensors = std::vector<torch::Tensor>;

// The inputs of an operator on the device, and the same values in double on the CPU.
struct Inputs {
  Tensors ours, theirs;
};

Inputs make_inputs(const std::vector<std::vector<std::int64_t>>& shapes, torch::Device device, torch::ScalarType dtype,
                   torch::MemoryFormat format) {
  Inputs inputs;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    torch::Tensor values = model::proof_numbers(shapes[i], static_cast<int>(i) + 3, torch::kCPU, dtype);
    if (values.dim() == 4) values = values.contiguous(format);
    inputs.ours.push_back(values.to(device).set_requires_grad(true));
    inputs.theirs.push_back(values.to(torch::kFloat64).set_requires_grad(true));
  }
  return inputs;
}

using Operator = std::function<torch::Tensor(const Tensors&)>;

// The worst relative difference of the result and of each input's gradient.
double worst_difference(const Inputs& inputs, const Operator& ours, const Operator& theirs) {
  const auto run = [](const Operator& apply, const Tensors& given) {
    const torch::Tensor y = apply(given);
    const torch::Tensor weights = model::proof_numbers(y.sizes(), 9, torch::kCPU, torch::kFloat32);
    Tensors results = {y};
    const Tensors gradients = torch::autograd::grad({y}, given, {weights.to(y.device(), y.scalar_type())});
    results.insert(results.end(), gradients.begin(), gradients.end());
    return results;
  };
  const Tensors got = run(ours, inputs.ours), want = run(theirs, inputs.theirs);
  double worst = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    worst = std::max(worst, relative_difference(got[i].detach().cpu(), want[i].detach()));
  }
  return worst;
}

struct NormCase {
  std::int64_t batch, channels, height, width, groups;
  bool silu, has_offset;
};

double group_norm_difference(const NormCase& norm, torch::Device device, torch::ScalarType dtype,
                             torch::MemoryFormat format) {
  std::vector<std::vector<std::int64_t>> shapes = {
      {norm.batch, norm.channels, norm.height, norm.width}, {norm.channels}, {norm.channels}};
  if (norm.has_offset) shapes.push_back({norm.batch, norm.channels});
  const Inputs inputs = make_inputs(shapes, device, dtype, format);
  const Operator ours = [&norm](const Tensors& t) {
    return model::group_norm(t[0], {.weight = t[1],
                                    .bias = t[2],
                                    .offset = norm.has_offset ? t[3] : torch::Tensor(),
                                    .groups = norm.groups,
                                    .eps = 1e-5,
                                    .silu = norm.silu});
  };
  const Operator theirs = [&norm](const Tensors& t) {
    const torch::Tensor shifted = norm.has_offset ? t[0] + t[3].unsqueeze(2).unsqueeze(3) : t[0];
    const torch::Tensor y = torch::group_norm(shifted, norm.groups, t[1], t[2], 1e-5);
    return norm.silu ? torch::silu(y) : y;
  };
  return worst_difference(inputs, ours, theirs);
}

// A small map; one of several slabs (model/kernels/cuda/group_norm_walk.cuh); one of several tiles of channels.
double group_norm_difference(torch::Device device, torch::ScalarType dtype, torch::MemoryFormat format) {
  double worst = 0;
  for (const NormCase& norm : {NormCase{2, 64, 18, 14, 8, true, true}, NormCase{1, 12, 40, 32, 2, true, false},
                               NormCase{1, 1056, 18, 14, 32, false, false}}) {
    worst = std::max(worst, group_norm_difference(norm, device, dtype, format));
  }
  return worst;
}

double geglu_difference(torch::Device device, torch::ScalarType dtype) {
  const Inputs inputs = make_inputs({{3, 37, 2 * 90}}, device, dtype, torch::MemoryFormat::Contiguous);
  const Operator theirs = [](const Tensors& t) {
    const Tensors halves = t[0].chunk(2, -1);
    return halves[0] * torch::gelu(halves[1]);
  };
  return worst_difference(
      inputs, [](const Tensors& t) { return model::geglu(t[0]); }, theirs);
}

std::vector<TrainedParameter> small_parameters(torch::Device device, torch::ScalarType dtype) {
  std::vector<TrainedParameter> parameters;
  const std::vector<std::vector<std::int64_t>> shapes = {{16, 40, 3, 3}, {4331}, {7}};
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const auto which = static_cast<int>(i);
    const torch::Tensor weight = model::proof_numbers(shapes[i], which, device, dtype);
    const torch::Tensor gradient = model::proof_numbers(shapes[i], which + 4, device, dtype);
    parameters.push_back({std::to_string(i), weight, gradient, torch::Tensor(), 0});
  }
  return parameters;
}

Tensors in_double(const std::vector<TrainedParameter>& parameters, torch::Tensor TrainedParameter::*member) {
  Tensors copies;
  for (const TrainedParameter& parameter : parameters) {
    copies.push_back((parameter.*member).to(torch::kCPU, torch::kFloat64).flatten().clone());
  }
  return copies;
}

double norm_difference(torch::Device device, torch::ScalarType dtype) {
  const std::vector<TrainedParameter> parameters = small_parameters(device, dtype);
  const torch::Tensor one = torch::ones({}, torch::TensorOptions().device(device));
  const torch::Tensor norm = clip_gradient(parameters, one, 1.0).norm;
  return relative_difference(norm.cpu(), torch::cat(in_double(parameters, &TrainedParameter::gradient)).norm());
}

// The change of the masters by two updates.
double adamw_difference(torch::Device device, torch::ScalarType dtype, bool is_coded) {
  const at::NoGradGuard no_grad;
  OptimOptions options;
  options.learning_rate = 1e-2;
  options.use_8bit_adam = is_coded;
  const std::vector<TrainedParameter> parameters = small_parameters(device, dtype);
  const Tensors starts = in_double(parameters, &TrainedParameter::weight);
  const Tensors gradients = in_double(parameters, &TrainedParameter::gradient);
  const auto on_device = torch::TensorOptions().device(device);
  const torch::Tensor rates = torch::full({1}, options.learning_rate, on_device.dtype(torch::kFloat64));
  const torch::Tensor factor = torch::ones({}, on_device.dtype(torch::kFloat32));
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(parameters, options);
  AdamWStatement statement(options, /*in_double=*/true);
  Tensors stated;
  for (const torch::Tensor& start : starts) stated.push_back(start.clone());
  for (int update = 0; update < 2; ++update) {
    optimizer->step(rates, factor);
    statement.update(stated, gradients);
  }
  Tensors got;
  for (const torch::Tensor& master : optimizer->masters())
    got.push_back(master.to(torch::kCPU, torch::kFloat64).flatten());
  return relative_difference(torch::cat(got) - torch::cat(starts), torch::cat(stated) - torch::cat(starts));
}

double random_difference(torch::Device device) {
  const model::SampleKey key{3, 11, true};
  const torch::Tensor got = model::draw_normal_batch(7, model::Draw::kNoise, {key}, {4, 33, 31}, device);
  const torch::Tensor want =
      model::draw_normal({7, model::Draw::kNoise, key.step, key.sample, key.class_image}, {4, 33, 31});
  return got[0].cpu().equal(want) ? 0 : 1;
}

class Comparison {
 public:
  // An operator that throws cannot be compared: its check fails, and the words go to standard error.
  void add(const std::string& name, double allowed, const char* source, const std::function<double()>& difference) {
    double value = std::numeric_limits<double>::infinity();
    try {
      value = difference();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "sdtune: %s: %s\n", name.c_str(), error.what());
    }
    checks.push_back({name, value, {}, allowed, source});
  }
  std::vector<Check> checks;
};

void add_operators(Comparison& comparison, torch::Device device, torch::ScalarType dtype) {
  const std::string in = " (" + model::dtype_name(dtype) + ")";
  const double allowed = model::allowed_difference(dtype);
  comparison.add("group norm, contiguous" + in, allowed, kUnitsOfLastPlace,
                 [&] { return group_norm_difference(device, dtype, torch::MemoryFormat::Contiguous); });
  comparison.add("group norm, channels_last" + in, allowed, kUnitsOfLastPlace,
                 [&] { return group_norm_difference(device, dtype, torch::MemoryFormat::ChannelsLast); });
  comparison.add("GEGLU" + in, allowed, kUnitsOfLastPlace, [&] { return geglu_difference(device, dtype); });
  comparison.add("gradient norm" + in, 1e-6, "float32 rounds to 6e-8; the sum is in double",
                 [&] { return norm_difference(device, dtype); });
  comparison.add("AdamW" + in, 1e-4, "a float32 weight of size 1 rounds to 6e-8, and a step is 1e-2",
                 [&] { return adamw_difference(device, dtype, false); });
  comparison.add("8-bit AdamW" + in, 5e-2, "moments in 8 bits are up to 1/30 apart (train/optim/adamw_8bit.h)",
                 [&] { return adamw_difference(device, dtype, true); });
}

void add_proofs(Comparison& comparison, bool has_kernels) {
  std::set<std::string> proved;
  for (const model::KernelProof& proof : model::kernel_proofs()) {
    proved.insert(proof.kernel.substr(0, proof.kernel.find(' ')));
    const std::string name =
        "kernel " + proof.kernel + " (" + model::dtype_name(proof.dtype) + ") beside LibTorch: " + proof.difference.of;
    comparison.checks.push_back({name, proof.difference.relative, {}, proof.difference.allowed, kUnitsOfLastPlace});
  }
  if (!has_kernels) return;
  for (const char* kernel : {"group_norm", "geglu", "gradient_norm", "adamw", "adamw_8bit", "philox_normal"}) {
    comparison.checks.push_back({std::string("kernel ") + kernel + " ran",
                                 proved.contains(kernel) ? 1.0 : 0.0,
                                 1,
                                 {},
                                 "a kernel that does not run proves nothing"});
  }
}

}  // namespace

std::vector<Check> compare_kernels(torch::Device device, bool has_kernels) {
  Comparison comparison;
  for (const auto dtype : {torch::kFloat32, torch::kBFloat16, torch::kFloat16})
    add_operators(comparison, device, dtype);
  comparison.add("random numbers that differ", 0, "the same in every bit on every device",
                 [&] { return random_difference(device); });
  add_proofs(comparison, has_kernels);
  return comparison.checks;
}

}  // namespace sdtune::train
