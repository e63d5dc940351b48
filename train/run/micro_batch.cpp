#include "train/run/micro_batch.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <exception>
#include <vector>

#include "model/core/out_of_memory.h"
#include "train/parameters/trainable_parameters.h"
#include "train/run/memory_use.h"
#include "train/run/train_step.h"

namespace sdtune::train {
namespace {

constexpr double kShareOfFree = 0.9;
constexpr std::int64_t kMostParametersInChunks = 100'000'000;

// One micro-batch of the first step, forward and backward. Nothing is kept, nothing is sent.
void probe(Run& run, std::int64_t micro) {
  struct Restore {
    ~Restore() { run.micro_batch = before; }
    Run& run;
    std::int64_t before;
  } const restore{run, run.micro_batch};
  run.micro_batch = micro;
  probe_gradients(run);
}

// True when `micro` photos at once go through on every rank.
bool fits_everywhere(Run& run, std::int64_t micro) {
  bool fits = true;
  try {
    probe(run, micro);
  } catch (const std::exception& error) {
    if (!model::is_out_of_memory(error)) throw;
    fits = false;
  }
  // LibTorch would keep all of a full GPU, and leave nothing to what takes memory from the driver: NCCL's buffers, the
  // code of kernels that are loaded when they are first launched.
  if (!fits && run.device.is_cuda()) c10::getDeviceAllocator(c10::kCUDA)->emptyCache();
  const std::vector<std::string> answers = run.group->gather_text(fits ? "fits" : "too large");
  return std::all_of(answers.begin(), answers.end(), [](const std::string& answer) { return answer == "fits"; });
}

std::int64_t fit_by_refusal(Run& run) {
  const std::int64_t batch = run.data.plan->shape().batch_size;
  for (std::int64_t micro = batch; micro > 0; micro = next_smaller_micro_batch(batch, micro)) {
    if (fits_everywhere(run, micro)) return micro;
  }
  throw OutOfMemoryError("memory", "one photo at a time does not fit", memory_hint(run.config));
}

std::int64_t fit_by_measure(Run& run) {
  const std::int64_t batch = run.data.plan->shape().batch_size;
  const std::int64_t second =
      batch > 1 ? batch / next_smaller_micro_batch(batch, batch) : 1;  // smallest divisor above 1
  // Ranks on a CPU share one machine as a rule; where they do not, less than there is is used.
  const double share = kShareOfFree / static_cast<double>(run.group->world_size());
  const std::int64_t limit =
      resident_bytes() + static_cast<std::int64_t>(share * static_cast<double>(free_memory_bytes()));
  const PeakMeter one;
  probe(run, 1);
  const std::int64_t first = one.peak_bytes();
  std::int64_t found = 1;
  if (second > 1 && 2 * first < limit) {  // the second trial itself must not be too much
    const PeakMeter several;
    probe(run, second);
    const std::int64_t each = std::max<std::int64_t>(0, several.peak_bytes() - first) / (second - 1);
    found = largest_micro_batch(batch, first, each, limit);
  }
  for (const std::string& answer : run.group->gather_text(std::to_string(found))) {
    found = std::min<std::int64_t>(found, std::stoll(answer));
  }
  return found;
}

}  // namespace

std::int64_t next_smaller_micro_batch(std::int64_t batch, std::int64_t micro) {
  for (std::int64_t smaller = micro - 1; smaller > 0; --smaller) {
    if (batch % smaller == 0) return smaller;
  }
  return 0;
}

std::int64_t largest_micro_batch(std::int64_t batch, std::int64_t first, std::int64_t each, std::int64_t limit) {
  for (std::int64_t micro = batch; micro > 1; micro = next_smaller_micro_batch(batch, micro)) {
    if (first + (micro - 1) * each <= limit) return micro;
  }
  return 1;
}

void fit_micro_batch(Run& run) {
  run.micro_batch = run.device.is_cpu() ? fit_by_measure(run) : fit_by_refusal(run);
  run.notes.push_back("micro_batch is " + std::to_string(run.micro_batch) + " of " +
                      std::to_string(run.data.plan->shape().batch_size) + " photos: auto, by a trial step");
}

bool computes_in_chunks(const Run& run) {
  return run.device.is_cpu() && run.group->world_size() == 1 && !run.config.run.gradient_checkpointing &&
         count_parameters(run.bundle) <= kMostParametersInChunks;
}

std::string memory_hint(const TrainConfig& config) {
  std::vector<std::string> hints;
  if (config.run.micro_batch != "auto" && config.run.micro_batch != "1") hints.emplace_back("micro_batch: auto");
  if (!config.run.gradient_checkpointing) hints.emplace_back("gradient_checkpointing");
  if (config.run.method == "full" && config.optim.chosen_optimizer() == "adamw") hints.emplace_back("use_8bit_adam");
  if (config.run.method == "full") hints.emplace_back("method: lora");
  if (config.run.train_text_encoder) hints.emplace_back("train_text_encoder: false");
  hints.emplace_back("a smaller resolution");
  std::string text;
  for (std::size_t i = 0; i < hints.size(); ++i) {
    if (i > 0) text += i + 1 == hints.size() ? " or " : ", ";
    text += hints[i];
  }
  return text + " needs less";
}

}  // namespace sdtune::train
