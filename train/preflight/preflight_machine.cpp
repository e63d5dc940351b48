// The checks of options that need nothing but this machine.

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <system_error>

#include "model/core/device.h"
#include "model/core/kernel_access.h"
#include "model/files/file_system.h"
#include "train/config/concept_options.h"
#include "train/config/preset.h"
#include "train/dist/network_interfaces.h"
#include "train/dist/rank_env.h"
#include "train/optim/lr_schedule.h"
#include "train/precision/mixed_precision.h"
#include "train/preflight/preflight_checks.h"

namespace sdtune::train {
namespace {

void check_micro_batch(const RunOptions& run, std::vector<Problem>& problems) {
  if (run.micro_batch.empty() || run.micro_batch == "auto") return;
  std::int64_t micro = 0;
  const char* end = run.micro_batch.data() + run.micro_batch.size();
  const auto [stop, status] = std::from_chars(run.micro_batch.data(), end, micro);
  const bool divides = status == std::errc() && stop == end && micro >= 1 && run.train_batch_size % micro == 0;
  if (divides) return;
  problems.push_back({"micro_batch",
                      "must divide train_batch_size (got " + run.micro_batch + "; allowed: auto, or a divisor of " +
                          std::to_string(run.train_batch_size) + ")",
                      ""});
}

torch::Device find_run_device(const TrainConfig& config) {
  return model::find_device(device_for_rank(config.run.device, read_rank_env(), model::has_usable_gpu()), "device");
}

// Graphs hold what one device does, without random numbers of the host.
void check_graphs(const TrainConfig& config, std::vector<Problem>& problems) {
  if (!config.run.cuda_graphs) return;
  const std::string hint = "leave it out";
  if (!find_run_device(config).is_cuda()) {
    problems.push_back({"cuda_graphs", "needs a GPU, and the device is a CPU", hint});
  }
  if (const auto ranks = read_rank_env().world_size; ranks > 1) {
    problems.push_back({"cuda_graphs", "is for one rank (got " + std::to_string(ranks) + " ranks)", hint});
  }
  if (config.run.method == "lora" && config.lora.lora_dropout > 0) {
    problems.push_back({"cuda_graphs", "and lora_dropout contradict each other", hint});
  }
}

// Else ranks that cannot begin to send would look lost, and be started again.
void check_network(const TrainConfig& config, std::vector<Problem>& problems) {
  if (read_rank_env().world_size == 1 || find_run_device(config).is_cuda()) return;
  const std::vector<std::string> there = interfaces_with_address();
  std::string known;
  for (const std::string& name : there) known += (known.empty() ? "" : ", ") + name;
  for (const std::string& name : gloo_interfaces()) {
    if (std::find(there.begin(), there.end(), name) != there.end()) continue;
    problems.push_back({"GLOO_SOCKET_IFNAME",
                        "names no network interface with an address (got " + name + "; allowed here: " + known + ")",
                        ""});
  }
}

void check_device(const TrainConfig& config, std::vector<Problem>& problems) {
  try {
    find_run_device(config);
  } catch (const Error& error) {
    append(problems, error.problems());
    return;
  }
  check_precision(config, problems);
  check_graphs(config, problems);
  check_network(config, problems);
}

void check_schedule(const TrainConfig& config, std::vector<Problem>& problems) {
  const std::int64_t steps = config.run.max_train_steps.value_or(1);
  const OptimOptions& options = config.optim;
  if (config.run.max_train_steps && options.lr_scheduler != "constant" && options.lr_warmup_steps > steps) {
    problems.push_back({"lr_warmup_steps",
                        "is longer than the run (got " + std::to_string(options.lr_warmup_steps) +
                            "; allowed: at most max_train_steps, " + std::to_string(steps) + ")",
                        ""});
  }
  try {
    LrSchedule::from_options(options, steps, 1);
  } catch (const Error& error) {
    problems.insert(problems.end(), error.problems().begin(), error.problems().end());
  }
}

void check_data(const TrainConfig& config, std::vector<Problem>& problems) {
  const DataOptions& data = config.data;
  if (!data.images.empty() && !data.concepts.empty()) {
    problems.push_back({"concepts", "and images contradict each other", "give the images of each subject in concepts"});
  }
  if (!data.center_crop && data.crop_style && *data.crop_style != "random") {
    problems.push_back({"crop_style",
                        "and center_crop contradict each other (got " + *data.crop_style +
                            "; allowed with center_crop: false is random)",
                        "give one of them"});
  }
  std::vector<Problem> reported_by_the_images;
  for (const ConceptOptions& subject : concepts_of(data, reported_by_the_images)) {
    if (data.with_prior_preservation && subject.class_prompt.empty()) {
      problems.push_back({"class_prompt", "is empty, and with_prior_preservation needs it", ""});
    }
    if (data.with_prior_preservation && is_file(subject.class_data_dir)) {
      problems.push_back({"class_data_dir", "is not a folder (got " + subject.class_data_dir + ")", ""});
    }
  }
  const bool two_forwards = data.enable_bucket && data.with_prior_preservation;
  if (two_forwards && config.run.gradient_checkpointing && config.lora.lora_dropout > 0 &&
      config.run.method == "lora") {
    problems.push_back({"lora_dropout",
                        "cannot be repeated for gradient_checkpointing when enable_bucket gives photos and class "
                        "images different sizes (got " +
                            std::to_string(config.lora.lora_dropout) + "; allowed: 0)",
                        "or switch one of the others off"});
  }
}

// By where it was given: a file is named with its line, a flag or a keyword of Python is not.
bool is_of_file(const std::string& origin) {
  return origin.find(':') != std::string::npos;
}

// What only a LoRA has, given without method: lora, would end in a full training that was not meant. A method that is
// given beside a file may leave the file's options of the other method unused.
void check_lora_options(const TrainConfig& config, std::vector<Problem>& problems) {
  const std::string& resumed = config.checkpoint.resume_from_checkpoint;  // a run may have begun before this check
  if (config.run.method == "lora" || (!resumed.empty() && resumed != "auto")) return;
  const auto method = config.origins.find("method");
  const bool replaces_file = method != config.origins.end() && !is_of_file(method->second);
  LoraOptions given = config.lora, defaults;
  const FieldList fields = given.fields(), default_fields = defaults.fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string& name = fields[i].info.name;
    const auto origin = config.origins.find(name);
    if (origin == config.origins.end() || is_of_preset(config, name)) continue;
    if (replaces_file && is_of_file(origin->second)) continue;
    if (field_text(fields[i]) == field_text(default_fields[i])) continue;  // config.yaml of a run lists all options
    problems.push_back({name, "is for method lora (got method full)", "give method: lora as well, or leave it out"});
  }
}

void check_ranks(std::vector<Problem>& problems) {
  try {
    read_rank_env();
  } catch (const Error& error) {
    problems.insert(problems.end(), error.problems().begin(), error.problems().end());
  }
}

}  // namespace

// A table of processors that cannot be read: each run on a CPU takes its implementations of operators from it.
void check_processor_table(const TrainConfig& config, std::vector<Problem>& problems) {
  if (find_run_device(config).is_cuda()) return;
  try {
    resolve_mixed_precision("auto", torch::kCPU, "");
  } catch (const ConfigError& error) {
    problems.insert(problems.end(), error.problems().begin(), error.problems().end());
  }
}

void check_precision(const TrainConfig& config, std::vector<Problem>& problems) {
  check_processor_table(config, problems);
  if (config.precision.mixed_precision != "fp16" || std::getenv("SDTUNE_EMULATE_FP16") != nullptr) return;
  if (find_run_device(config).is_cuda()) return;
  problems.push_back({"mixed_precision", "fp16 needs a GPU, and the device is a CPU (allowed there: no, bf16)", ""});
}

void check_contradictions(const TrainConfig& config, std::vector<Problem>& problems) {
  const std::vector<Problem> optimizer = optimizer_problems(config.optim);
  problems.insert(problems.end(), optimizer.begin(), optimizer.end());
  if (config.run.overwrite && !config.checkpoint.resume_from_checkpoint.empty()) {
    problems.push_back({"overwrite", "and resume_from_checkpoint contradict each other", "give one of them"});
  }
  check_data(config, problems);
  check_lora_options(config, problems);
  check_micro_batch(config.run, problems);
  check_schedule(config, problems);
}

void check_options(const TrainConfig& config, std::vector<Problem>& problems) {
  check_contradictions(config, problems);
  check_rental(config, problems);
  check_trackers(config, problems);
  const std::size_t before = problems.size();
  check_ranks(problems);
  if (problems.size() == before) check_device(config, problems);
}

}  // namespace sdtune::train
