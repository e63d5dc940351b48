// AdamW by our CUDA kernels: a launch for the step's values, and one for each set of parameters that share their rate,
// their types and the way their moments are kept. Rates, bias corrections and the decision to skip stay on the device.
#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "model/core/kernel_access.h"
#include "model/core/kernel_proof.h"
#include "train/optim/adamw_8bit_kernel.h"
#include "train/optim/adamw_library.h"
#include "train/optim/dynamic_code.h"
#include "train/optim/optimizer_kernels.h"

namespace sdtune::train {

namespace {

struct LaunchKey {
  std::int64_t rate_group;
  model::CudaType weight_type;
  model::CudaType gradient_type;
  auto operator<=>(const LaunchKey&) const = default;
};

LaunchKey key_of(const TrainedParameter& parameter) {
  return {parameter.rate_group, model::cuda_type(parameter.weight.scalar_type()),
          model::cuda_type(parameter.gradient.scalar_type())};
}

template <typename Entry>
struct AdamWLaunch {
  std::vector<Entry> entries;
  std::vector<torch::Tensor> gradients;  // of the entries: where their memory is, they say anew in each step
  std::vector<std::int64_t> counts;
  std::int64_t chunk_count = 0;
  torch::Tensor entries_on_device, chunks_on_device;

  void add(const Entry& entry, const torch::Tensor& gradient) {
    entries.push_back(entry);
    gradients.push_back(gradient);
    counts.push_back(entry.count);
  }
  void finish(torch::Device device) {
    const std::vector<CudaChunk> chunks = chunks_of(counts);
    chunk_count = static_cast<std::int64_t>(chunks.size());
    chunks_on_device = list_on_device(chunks, device);
  }
  // The allocator gives out the same memory in most steps, so that nothing is to be copied.
  void find_gradients(torch::Device device) {
    bool moved = !entries_on_device.defined();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const void* memory = gradients[i].const_data_ptr();
      moved = moved || entries[i].gradient != memory;
      entries[i].gradient = memory;
    }
    if (moved) entries_on_device = list_on_device(entries, device);
  }
  const Entry* list() const { return static_cast<const Entry*>(entries_on_device.const_data_ptr()); }
  const CudaChunk* chunks() const { return static_cast<const CudaChunk*>(chunks_on_device.const_data_ptr()); }
};

CudaParameter entry_of(const TrainedParameter& parameter, const AdamWMemory& memory) {
  return {parameter.weight.data_ptr(),     nullptr,
          memory.master.data_ptr<float>(), memory.mean.data_ptr<float>(),
          memory.square.data_ptr<float>(), parameter.weight.numel()};
}

// Codes are in the order of the shape, so the kernel has to know how else a weight lies in memory.
CudaCodedParameter entry_of(const TrainedParameter& parameter, const CodedMemory& memory) {
  const torch::Tensor& weight = parameter.weight;
  const bool is_plain = weight.is_contiguous();
  TORCH_CHECK(is_plain || weight.is_contiguous(torch::MemoryFormat::ChannelsLast), parameter.name,
              ": 8-bit moments need a weight that is contiguous or channels_last");
  TORCH_CHECK(weight.numel() < std::int64_t{1} << 31, parameter.name, ": 2^31 numbers or more");
  const auto channels = static_cast<std::int32_t>(is_plain ? 1 : weight.size(1));
  const auto taps = static_cast<std::int32_t>(is_plain ? 1 : weight.size(2) * weight.size(3));
  return {weight.data_ptr(),
          nullptr,
          memory.master.data_ptr<float>(),
          memory.mean.codes.data_ptr<std::uint8_t>(),
          memory.square.codes.data_ptr<std::uint8_t>(),
          memory.mean.scale.data_ptr<float>(),
          memory.square.scale.data_ptr<float>(),
          weight.numel(),
          channels,
          taps};
}

torch::Tensor code_book(torch::Device device) {
  CudaCodeBook book;
  for (int kind = 0; kind < 2; ++kind) {
    const DynamicCode& code = kind == 0 ? DynamicCode::with_sign() : DynamicCode::without_sign();
    std::copy(code.values().begin(), code.values().end(), book.values[kind]);
    std::copy(code.midpoints().begin(), code.midpoints().end(), book.midpoints[kind]);
    book.midpoints[kind][255] = std::numeric_limits<float>::infinity();
  }
  return list_on_device(std::vector<CudaCodeBook>{book}, device);
}

class CudaAdamW : public AdamWEngine {
 public:
  CudaAdamW(const AdamWWork& work, const OptimOptions& options, const OptimizerTable& kernels)
      : work_(work), options_(options), kernels_(kernels), book_(code_book(work.device())) {
    for (std::size_t i = 0; i < work.plain.size(); ++i) {
      plain_[key_of(work.plain[i])].add(entry_of(work.plain[i], work.plain_memory[i]), work.plain[i].gradient);
    }
    for (std::size_t i = 0; i < work.coded.size(); ++i) {
      coded_[key_of(work.coded[i])].add(entry_of(work.coded[i], work.coded_memory[i]), work.coded[i].gradient);
    }
    for (auto& [key, launch] : plain_) launch.finish(work.device());
    for (auto& [key, launch] : coded_) launch.finish(work.device());
  }

  void step(const torch::Tensor& rates, const torch::Tensor& gradient_factor, torch::Tensor& updates) override {
    const model::CudaStream stream = model::kernel_stream(work_.device());
    const auto step_bytes = static_cast<std::int64_t>(sizeof(CudaAdamWStep));
    const torch::Tensor values = torch::empty({rates.numel() * step_bytes}, rates.options().dtype(torch::kUInt8));
    auto* steps = static_cast<CudaAdamWStep*>(values.data_ptr());
    kernels_.adamw_step(rates.const_data_ptr<double>(), rates.numel(), gradient_factor.const_data_ptr<float>(),
                        updates.data_ptr<std::int64_t>(),
                        {options_.adam_beta1, options_.adam_beta2, options_.adam_epsilon, options_.adam_weight_decay},
                        steps, stream);
    for (auto& [key, launch] : plain_) {
      launch.find_gradients(work_.device());
      kernels_.adamw(launch.list(), launch.chunks(), launch.chunk_count, key.weight_type, key.gradient_type,
                     steps + key.rate_group, stream);
    }
    for (auto& [key, launch] : coded_) {
      launch.find_gradients(work_.device());
      kernels_.adamw_8bit(launch.list(), launch.chunks(), launch.chunk_count, key.weight_type, key.gradient_type,
                          steps + key.rate_group, static_cast<const CudaCodeBook*>(book_.const_data_ptr()), stream);
    }
  }

 private:
  AdamWWork work_;  // keeps what the lists point to
  OptimOptions options_;
  const OptimizerTable& kernels_;
  torch::Tensor book_;
  std::map<LaunchKey, AdamWLaunch<CudaParameter>> plain_;
  std::map<LaunchKey, AdamWLaunch<CudaCodedParameter>> coded_;
};

// Small parameters of the given kind: 3 x 3 weights in both memory formats and a vector with a tail. Gradients grow, so
// that no two blocks of codes have one scale.
AdamWWork proof_work(const TrainedParameter& like, bool coded) {
  const torch::Device device = like.weight.device();
  const auto on_device = torch::TensorOptions().device(device);
  const std::vector<torch::Tensor> numbers = {
      model::proof_numbers({12, 40, 3, 3}, 1, device, torch::kFloat32),
      model::proof_numbers({12, 40, 3, 3}, 2, device, torch::kFloat32).contiguous(torch::MemoryFormat::ChannelsLast),
      model::proof_numbers({4331}, 3, device, torch::kFloat32)};
  AdamWWork work;
  for (const torch::Tensor& master : numbers) {
    const std::int64_t count = master.numel();
    const bool is_own = like.weight.scalar_type() == torch::kFloat32;
    TrainedParameter parameter;
    parameter.name = "proof";
    parameter.weight = is_own ? master : master.to(like.weight.scalar_type());
    parameter.gradient = torch::empty_like(parameter.weight, like.gradient.scalar_type());
    parameter.gradient.copy_((master * 0.7 - 0.1) * torch::linspace(0.1, 10, count, on_device).view(master.sizes()));
    if (coded) {
      work.coded.push_back(parameter);
      work.coded_memory.push_back({master, fresh_coded_moment(master.numel(), CodedKind::kMean, device),
                                   fresh_coded_moment(master.numel(), CodedKind::kSquare, device)});
    } else {
      work.plain.push_back(parameter);
      work.plain_memory.push_back({master, torch::zeros_like(master), torch::zeros_like(master)});
    }
  }
  return work;
}

// Two steps and a skipped one; what changed, and what is kept for the next step.
std::vector<torch::Tensor> proof_results(AdamWEngine& engine, const AdamWWork& work) {
  std::vector<torch::Tensor> before;
  for (const AdamWMemory& memory : work.plain_memory) before.push_back(memory.master.clone());
  for (const CodedMemory& memory : work.coded_memory) before.push_back(memory.master.clone());
  const auto on_device = torch::TensorOptions().device(work.device());
  const torch::Tensor rates = torch::full({1}, 1e-2, on_device.dtype(torch::kFloat64));
  torch::Tensor updates = torch::zeros({}, on_device.dtype(torch::kInt64));
  for (const float factor : {0.5F, std::numeric_limits<float>::quiet_NaN(), 0.25F}) {
    engine.step(rates, torch::full({}, factor, on_device.dtype(torch::kFloat32)), updates);
  }
  std::vector<torch::Tensor> results = {updates};
  for (std::size_t i = 0; i < work.plain.size(); ++i) {
    const AdamWMemory& memory = work.plain_memory[i];
    results.insert(results.end(), {memory.master - before[i], work.plain[i].weight, memory.mean, memory.square});
  }
  for (std::size_t i = 0; i < work.coded.size(); ++i) {
    const CodedMemory& memory = work.coded_memory[i];
    results.insert(results.end(),
                   {memory.master - before[i], work.coded[i].weight, memory.mean.scale, memory.square.scale,
                    memory.mean.codes.to(torch::kFloat32), memory.square.codes.to(torch::kFloat32)});
  }
  return results;
}

// pow() of two libraries may round a step's values apart, and then numbers by an ulp, and codes on a border by one.
model::KernelDifference compare_adamw(const TrainedParameter& like, bool coded, const OptimizerTable& kernels) {
  const torch::NoGradGuard no_grad;
  const OptimOptions options;
  std::vector<std::vector<torch::Tensor>> results;
  for (const bool is_ours : {true, false}) {
    const AdamWWork work = proof_work(like, coded);
    const std::unique_ptr<AdamWEngine> engine =
        is_ours ? std::make_unique<CudaAdamW>(work, options, kernels) : make_library_adamw(work, options);
    results.push_back(proof_results(*engine, work));
  }
  const std::vector<std::string> names =
      coded ? std::vector<std::string>{"change",          "weight",       "mean's scales",
                                       "square's scales", "mean's codes", "square's codes"}
            : std::vector<std::string>{"change", "weight", "mean", "square"};
  std::vector<model::ComparedTensor> compared = {{"number of updates", results[0][0], results[1][0]}};
  for (std::size_t i = 1; i < results[0].size(); ++i) {
    compared.push_back({names[(i - 1) % names.size()], results[0][i], results[1][i]});
  }
  return model::worst_difference(compared, 1e-3);
}

void require_proven_adamw(const std::vector<TrainedParameter>& parameters, bool coded, const OptimizerTable& kernels) {
  for (const TrainedParameter& parameter : parameters) {
    const std::string name = std::string(coded ? "adamw_8bit" : "adamw") + " with gradients in " +
                             c10::toString(parameter.gradient.scalar_type());
    model::require_proven({name, parameter.weight.device(), parameter.weight.scalar_type()},
                          [&] { return compare_adamw(parameter, coded, kernels); });
  }
}

}  // namespace

std::unique_ptr<AdamWEngine> make_cuda_adamw(const AdamWWork& work, const OptimOptions& options) {
  const OptimizerTable* kernels = optimizer_kernels(work.device());
  TORCH_CHECK(kernels != nullptr, "AdamW: no kernels for ", work.device());
  require_proven_adamw(work.plain, false, *kernels);
  require_proven_adamw(work.coded, true, *kernels);
  return std::make_unique<CudaAdamW>(work, options, *kernels);
}

}  // namespace sdtune::train
