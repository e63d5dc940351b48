#include "model/kernels/group_norm_cuda.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "model/core/kernel_access.h"
#include "model/core/kernel_proof.h"

namespace sdtune::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

CudaGroupNorm shape_of(const torch::Tensor& map, const GroupNormArguments& arguments) {
  return {.batch = map.size(0),
          .channels = map.size(1),
          .spatial = map.size(2) * map.size(3),
          .groups = arguments.groups,
          .epsilon = static_cast<float>(arguments.eps),
          .silu = arguments.silu,
          .channels_last = map.is_contiguous(torch::MemoryFormat::ChannelsLast) && !map.is_contiguous()};
}

void* data_or_null(const torch::Tensor& tensor) {
  return tensor.defined() ? tensor.data_ptr() : nullptr;
}

struct KernelGroupNorm : torch::autograd::Function<KernelGroupNorm> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& weight,
                               const torch::Tensor& bias, const std::optional<torch::Tensor>& given_offset,
                               const GroupNormArguments& arguments, const CudaTable* kernels) {
    const torch::Tensor map = x.contiguous(x.suggest_memory_format());
    const torch::Tensor offset = given_offset ? given_offset->contiguous() : torch::Tensor();
    const CudaGroupNorm shape = shape_of(map, arguments);
    const CudaType type = cuda_type(map.scalar_type());
    const auto floats = map.options().dtype(torch::kFloat32).memory_format(torch::MemoryFormat::Contiguous);
    const torch::Tensor y = torch::empty_like(map);
    const torch::Tensor columns = torch::empty({kGroupNormColumns, shape.batch, shape.channels}, floats);
    const torch::Tensor rstd = torch::empty({shape.batch, shape.groups}, floats);
    const torch::Tensor workspace = torch::empty({kernels->group_norm_workspace(shape, type)}, floats);
    kernels->group_norm_forward(
        {map.data_ptr(), weight.contiguous().data_ptr(), bias.contiguous().data_ptr(), data_or_null(offset),
         y.data_ptr(), columns.data_ptr<float>(), rstd.data_ptr<float>(), workspace.data_ptr<float>()},
        shape, type, kernel_stream(map.device()));
    context->save_for_backward({map, columns, rstd});
    context->saved_data["groups"] = arguments.groups;
    context->saved_data["silu"] = arguments.silu;
    context->saved_data["has_offset"] = given_offset.has_value();
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const torch::Tensor &x = saved[0], &columns = saved[1], &rstd = saved[2];
    GroupNormArguments arguments;
    arguments.groups = context->saved_data["groups"].toInt();
    arguments.silu = context->saved_data["silu"].toBool();
    const bool has_offset = context->saved_data["has_offset"].toBool();
    const CudaGroupNorm shape = shape_of(x, arguments);
    const CudaType type = cuda_type(x.scalar_type());
    const CudaTable* kernels = kernel_table(x.device());
    TORCH_CHECK(kernels != nullptr, "group norm: its kernels went away between forward and backward");
    const torch::Tensor dy = gradients[0].contiguous(x.suggest_memory_format());
    const torch::Tensor dx = torch::empty_like(x);
    const auto options = x.options().memory_format(torch::MemoryFormat::Contiguous);
    const bool of_affine = context->needs_input_grad(1) || context->needs_input_grad(2);
    const bool of_offset = has_offset && context->needs_input_grad(3);
    const torch::Tensor weight = of_affine ? torch::empty({shape.channels}, options) : torch::Tensor();
    const torch::Tensor bias = of_affine ? torch::empty({shape.channels}, options) : torch::Tensor();
    const torch::Tensor offset = of_offset ? torch::empty({shape.batch, shape.channels}, options) : torch::Tensor();
    const torch::Tensor workspace =
        torch::empty({kernels->group_norm_workspace(shape, type)}, options.dtype(torch::kFloat32));
    kernels->group_norm_backward(
        {dy.data_ptr(), x.data_ptr(), columns.data_ptr<float>(), rstd.data_ptr<float>(), dx.data_ptr(),
         data_or_null(weight), data_or_null(bias), data_or_null(offset), workspace.data_ptr<float>()},
        shape, type, kernel_stream(x.device()));
    return {dx, weight, bias, offset, torch::Tensor(), torch::Tensor()};
  }
};

struct ProofCase {
  std::vector<std::int64_t> shape;
  std::int64_t groups;
  bool silu, has_offset;
};

// group_norm_cut makes these one block's work, and in the last two several slabs in both memory formats; in the one of
// many channels also several tiles. Width and height are whole packs or not.
const std::vector<ProofCase>& proof_cases() {
  static const std::vector<ProofCase>& cases = *new std::vector<ProofCase>{{{2, 48, 9, 8}, 8, true, true},
                                                                           {{1, 18, 7, 5}, 3, true, true},
                                                                           {{2, 48, 9, 8}, 8, false, false},
                                                                           {{1, 12, 40, 32}, 2, true, false},
                                                                           {{1, 1056, 18, 14}, 32, false, true}};
  return cases;
}

// One case of the proof: y and all gradients, ours in the dtype, theirs in float32 from the same rounded inputs.
void compare_case(const CudaTable& kernels, const torch::Tensor& like, const ProofCase& proof,
                  torch::MemoryFormat format, std::vector<ComparedTensor>& compared) {
  const torch::IntArrayRef shape = proof.shape;
  const auto leaf = [&](torch::IntArrayRef of, int which, torch::ScalarType dtype) {
    const torch::Tensor numbers = proof_numbers(of, which, like.device(), like.scalar_type()).to(dtype);
    return (of.size() == 4 ? numbers.contiguous(format) : numbers).detach().clone().set_requires_grad(true);
  };
  std::vector<variable_list> results;
  for (const torch::ScalarType dtype : {like.scalar_type(), torch::kFloat32}) {
    const bool is_ours = results.empty();
    variable_list leaves = {leaf(shape, 1, dtype), leaf({shape[1]}, 2, dtype), leaf({shape[1]}, 3, dtype)};
    if (proof.has_offset) leaves.push_back(leaf({shape[0], shape[1]}, 4, dtype));
    const GroupNormArguments arguments = {.weight = leaves[1],
                                          .bias = leaves[2],
                                          .offset = proof.has_offset ? leaves[3] : torch::Tensor(),
                                          .groups = proof.groups,
                                          .silu = proof.silu};
    const torch::Tensor y =
        is_ours ? group_norm_by_kernel(kernels, leaves[0], arguments) : group_norm_by_library(leaves[0], arguments);
    const torch::Tensor dy = leaf(shape, 5, dtype).detach();
    variable_list all = torch::autograd::grad({y}, leaves, {dy});
    all.insert(all.begin(), y);
    results.push_back(all);
  }
  const char* names[] = {"values", "gradient of x", "gradient of weight", "gradient of bias", "gradient of offset"};
  for (std::size_t i = 0; i < results[0].size(); ++i) compared.push_back({names[i], results[0][i], results[1][i]});
}

KernelDifference compare_group_norm(const CudaTable& kernels, const torch::Tensor& like) {
  std::vector<ComparedTensor> compared;
  for (const auto format : {torch::MemoryFormat::Contiguous, torch::MemoryFormat::ChannelsLast}) {
    for (const ProofCase& proof : proof_cases()) compare_case(kernels, like, proof, format, compared);
  }
  return worst_difference(compared, allowed_difference(like.scalar_type()));
}

}  // namespace

bool fits_group_norm_kernel(const torch::Tensor& x, const GroupNormArguments& arguments) {
  const torch::ScalarType dtype = x.scalar_type();
  const bool is_known = dtype == torch::kFloat32 || dtype == torch::kBFloat16 || dtype == torch::kFloat16;
  if (!is_known || x.dim() != 4 || x.numel() == 0) return false;
  const auto agrees = [&](const torch::Tensor& other) {
    return !other.defined() || (other.scalar_type() == dtype && other.device() == x.device());
  };
  if (!agrees(arguments.weight) || !agrees(arguments.bias) || !agrees(arguments.offset)) return false;
  constexpr std::int64_t kMostNumbers = (std::int64_t{1} << 31) - (1 << 16), kMostImages = 65535, kMostWidth = 256;
  return x.size(1) * x.size(2) * x.size(3) < kMostNumbers && x.size(0) <= kMostImages &&
         x.size(1) % arguments.groups == 0 && x.size(1) / arguments.groups <= kMostWidth;
}

torch::Tensor group_norm_by_kernel(const CudaTable& kernels, const torch::Tensor& x,
                                   const GroupNormArguments& arguments) {
  const std::optional<torch::Tensor> offset =
      arguments.offset.defined() ? std::optional(arguments.offset) : std::nullopt;
  return KernelGroupNorm::apply(x, arguments.weight, arguments.bias, offset, arguments, &kernels);
}

torch::Tensor group_norm_by_library(const torch::Tensor& x, const GroupNormArguments& arguments) {
  const torch::Tensor shifted = arguments.offset.defined() ? x + arguments.offset.unsqueeze(2).unsqueeze(3) : x;
  const torch::Tensor y = torch::group_norm(shifted, arguments.groups, arguments.weight, arguments.bias, arguments.eps);
  return arguments.silu ? torch::silu(y) : y;
}

const CudaTable* group_norm_kernels(const torch::Tensor& x, const GroupNormArguments& arguments) {
  const CudaTable* kernels = kernel_table(x.device());
  if (kernels == nullptr || !fits_group_norm_kernel(x, arguments)) return nullptr;
  const bool proven =
      is_proven({"group_norm", x.device(), x.scalar_type()}, [&] { return compare_group_norm(*kernels, x); });
  return proven ? kernels : nullptr;
}

}  // namespace sdtune::model
