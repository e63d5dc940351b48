#include "train/prove/step_record.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "model/core/device.h"
#include "model/files/json_file.h"
#include "model/weights/safetensors_file.h"
#include "train/prove/adamw_statement.h"
#include "train/run/memory_use.h"
#include "train/run/step_graphs.h"
#include "train/run/train_step.h"

namespace sdtune::train {

namespace {

constexpr std::int64_t kSampled = 2048;

std::filesystem::path with_suffix(std::filesystem::path file, const char* suffix) {
  return file += suffix;
}

torch::Tensor kept(const torch::Tensor& tensor) {
  const auto dtype = tensor.is_floating_point() ? torch::kFloat32 : tensor.scalar_type();
  return tensor.detach().to(torch::kCPU, dtype).contiguous().clone();
}

// The whole effective batch of a step, in the order of its global samples.
std::vector<BatchSlot> slots_of(Run& run, std::uint64_t step) {
  std::vector<BatchSlot> slots;
  const BatchShape& shape = run.data.plan->shape();
  for (std::int64_t round = 0; round < shape.rounds; ++round) {
    for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
      const std::vector<BatchSlot> part = run.data.plan->photos(step, rank, round);
      slots.insert(slots.end(), part.begin(), part.end());
    }
  }
  return slots;
}

std::vector<torch::Tensor> all_sampled(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> samples;
  for (const torch::Tensor& tensor : tensors) samples.push_back(sampled(tensor));
  return samples;
}

// Collects the record of one run, a step at a time.
class Recorder {
 public:
  explicit Recorder(Run& run)
      : run_(run),
        statement_(run.config.optim, /*in_double=*/true),
        start_(all_sampled(run.optimizer->masters())),
        before_(start_) {}

  // After a step that was applied.
  void add(std::uint64_t step, const torch::Tensor& numbers, double seconds) {
    const double scale = numbers[kLossScale].item<double>(), norm = numbers[kGradNorm].item<double>();
    std::vector<torch::Tensor> whole, gradients;
    for (const TrainedParameter& parameter : run_.optimizer->parameters()) {
      whole.push_back(parameter.gradient);
      gradients.push_back(sampled(parameter.gradient) / scale);
    }
    if (losses_.empty()) gradients_ = gradients;
    norm_errors_.push_back(std::abs(norm - norm_of(whole) / scale) / std::max(norm, 1e-30));
    update_errors_.push_back(update_error(gradients, norm));
    keep_inputs(run_, step, losses_.size(), record_.tensors);
    losses_.push_back(numbers[kLossInstance].item<double>());
    norms_.push_back(norm);
    seconds_.push_back(seconds);
  }

  StepRecord finish() {
    for (std::size_t i = 0; i < before_.size(); ++i) {
      const std::string& name = run_.optimizer->parameters()[i].name;
      record_.tensors.emplace_back("gradient." + name, kept(gradients_[i]));
      record_.tensors.emplace_back("change." + name, kept(before_[i] - start_[i]));
    }
    const auto list = [&](const char* name, const std::vector<double>& values) {
      record_.tensors.emplace_back(name, kept(torch::tensor(values, torch::kFloat64)));
    };
    list("losses", losses_);
    list("norms", norms_);
    list("update_errors", update_errors_);
    list("norm_errors", norm_errors_);
    std::sort(seconds_.begin(), seconds_.end());
    record_.facts["seconds_a_step"] = seconds_.at(seconds_.size() / 2);
    return std::move(record_);
  }

  std::size_t applied() const { return losses_.size(); }

 private:
  // |change - stated change| / |stated change| of all samples together.
  double update_error(std::vector<torch::Tensor> gradients, double norm) {
    const double factor = clip_factor(norm, run_.config.optim.max_grad_norm);
    std::vector<torch::Tensor> stated;
    for (std::size_t i = 0; i < before_.size(); ++i) {
      gradients[i] = gradients[i] * factor;
      stated.push_back(before_[i].clone());
    }
    statement_.update(stated, gradients);
    const std::vector<torch::Tensor> after = all_sampled(run_.optimizer->masters());
    const torch::Tensor change = torch::cat(stated) - torch::cat(before_);
    const torch::Tensor wrong = torch::cat(after) - torch::cat(stated);
    before_ = after;
    return wrong.norm().item<double>() / std::max(change.norm().item<double>(), 1e-30);
  }

  Run& run_;
  AdamWStatement statement_;
  StepRecord record_;
  std::vector<torch::Tensor> start_, before_, gradients_;
  std::vector<double> losses_, norms_, update_errors_, norm_errors_, seconds_;
};

}  // namespace

const torch::Tensor* StepRecord::find(const std::string& name) const {
  for (const auto& [key, tensor] : tensors) {
    if (key == name) return &tensor;
  }
  return nullptr;
}

torch::Tensor sampled(const torch::Tensor& tensor) {
  const std::int64_t all = tensor.numel(), count = std::min(all, kSampled);
  const torch::Tensor places = (torch::arange(count, torch::kInt64) * all).floor_divide(count).to(tensor.device());
  return tensor.detach().reshape({-1}).index_select(0, places).to(torch::kCPU, torch::kFloat64);
}

double norm_of(const std::vector<torch::Tensor>& tensors) {
  double squares = 0;
  for (const torch::Tensor& tensor : tensors) {
    const double norm = tensor.to(torch::kFloat64).norm().item<double>();
    squares += norm * norm;
  }
  return std::sqrt(squares);
}

void keep_inputs(Run& run, std::uint64_t step, std::size_t index, model::NamedTensors& to) {
  const std::vector<BatchSlot> slots = slots_of(run, step);
  std::vector<std::string> captions;
  std::vector<model::SampleKey> keys;
  for (const BatchSlot& slot : slots) {
    captions.push_back(run.data.photos.photos[static_cast<std::size_t>(slot.image)].caption);
    keys.push_back(slot.key());
  }
  const torch::Tensor latents = run.data.latents->latents(slots);
  const model::PromptEmbeds embeds = run.data.texts->states(captions);
  const DiffusionDraws draws = run.loss->draw(keys, latents.sizes(), run.device);
  const std::string number = fmt::format(".{}", index);
  to.emplace_back("latents" + number, kept(latents));
  to.emplace_back("context" + number, kept(embeds.context));
  to.emplace_back("noise" + number, kept(draws.noise));
  to.emplace_back("timesteps" + number, kept(draws.timesteps));
  if (!run.bundle.is_xl()) return;
  to.emplace_back("text_embeds" + number, kept(embeds.pooled));
  to.emplace_back("time_ids" + number, kept(run.data.latents->time_ids(slots)));
}

StepRecord record_steps(Run& run, std::int64_t count, const StepFunction& step) {
  const at::NoGradGuard no_grad;  // of what is recorded; train_step has its own
  Recorder recorder(run);
  std::int64_t skipped = 0, first = 0;
  for (std::int64_t number = 0; recorder.applied() < static_cast<std::size_t>(count); ++number) {
    if (number >= run.total_steps) {
      throw NonFiniteError("steps", "only " + std::to_string(recorder.applied()) + " of " + std::to_string(count) +
                                        " steps had finite gradients; " + std::to_string(skipped) + " had not");
    }
    const auto start = std::chrono::steady_clock::now();
    torch::Tensor numbers;
    {
      const at::AutoGradMode with_gradients(true);
      numbers = step(run, static_cast<std::uint64_t>(number)).to(torch::kCPU);
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    if (!std::isfinite(numbers[kGradNorm].item<double>())) {
      ++skipped;
      continue;
    }
    if (recorder.applied() == 0) first = number;
    recorder.add(static_cast<std::uint64_t>(number), numbers, seconds.count());
  }
  StepRecord record = recorder.finish();
  record.facts.update({{"device", run.device.str()},
                       {"dtype", model::dtype_name(run.dtype)},
                       {"ranks", run.group->world_size()},
                       {"steps", count},
                       {"skipped", skipped},
                       {"first_step", first},
                       {"reduced_bytes", run.group->reduced_bytes()},
                       {"replayed", run.graphs ? run.graphs->replays() : 0},
                       {"peak_bytes", max_memory_bytes(run.device)}});
  return record;
}

void write_record(const std::filesystem::path& file, const StepRecord& record) {
  model::write_safetensors(real_file_system(), with_suffix(file, ".safetensors"), record.tensors);
  write_file_atomically(real_file_system(), with_suffix(file, ".json"), record.facts.dump(1) + "\n");
}

bool has_record(const std::filesystem::path& file) {
  return is_file(with_suffix(file, ".json"));
}

StepRecord read_record(const std::filesystem::path& file) {
  StepRecord record;
  record.facts = read_json(with_suffix(file, ".json"));
  const model::SafetensorsFile tensors(with_suffix(file, ".safetensors"));
  for (const auto& [name, entry] : tensors.header().tensors) record.tensors.emplace_back(name, tensors.tensor(name));
  return record;
}

}  // namespace sdtune::train
