// The checks of options that need nothing but this machine.

#include <charconv>
#include <cstdlib>
#include <system_error>

#include "model/core/device.h"
#include "train/dist/rank_env.h"
#include "train/optim/lr_schedule.h"
#include "train/run/preflight_checks.h"

namespace sdtune::train {
namespace {

bool all_digits(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

void check_micro_batch(const RunOptions& run, std::vector<Problem>& problems) {
  if (run.micro_batch.empty()) return;
  if (run.micro_batch == "auto") {
    problems.push_back({"micro_batch", "auto is not supported yet (allowed: a divisor of train_batch_size)", ""});
    return;
  }
  std::int64_t micro = 0;
  const char* end = run.micro_batch.data() + run.micro_batch.size();
  const auto [stop, status] = std::from_chars(run.micro_batch.data(), end, micro);
  const bool divides = status == std::errc() && stop == end && micro >= 1 && run.train_batch_size % micro == 0;
  if (divides) return;
  problems.push_back({"micro_batch",
                      "must divide train_batch_size (got " + run.micro_batch + "; allowed: a divisor of " +
                          std::to_string(run.train_batch_size) + ")",
                      ""});
}

void check_device(const TrainConfig& config, std::vector<Problem>& problems) {
  const std::string& device = config.run.device;
  const bool is_cuda = device == "cuda" || (device.starts_with("cuda:") && all_digits(device.substr(5)));
  if (!is_cuda && device != "cpu" && device != "auto") {
    problems.push_back({"device", "is unknown (got " + device + "; allowed: auto, cpu, cuda, cuda:N)", ""});
    return;
  }
  const std::string no_cuda = device == "cpu" ? "cpu was asked for" : model::why_no_cuda();
  if (is_cuda && !no_cuda.empty()) problems.push_back({"device", "cannot be " + device + ": " + no_cuda, ""});
  const bool on_cpu = device == "cpu" || (device == "auto" && !no_cuda.empty());
  if (on_cpu && config.precision.mixed_precision == "fp16" && std::getenv("SDTUNE_EMULATE_FP16") == nullptr) {
    problems.push_back({"mixed_precision", "fp16 needs a GPU, and the device is a CPU (allowed there: no, bf16)", ""});
  }
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

void check_ranks(std::vector<Problem>& problems) {
  try {
    read_rank_env();
  } catch (const Error& error) {
    problems.insert(problems.end(), error.problems().begin(), error.problems().end());
  }
}

}  // namespace

void check_options(const TrainConfig& config, std::vector<Problem>& problems) {
  if (config.run.method == "lora") problems.push_back({"method", "lora is not supported yet (allowed: full)", ""});
  if (config.optim.use_8bit_adam) {
    problems.push_back({"use_8bit_adam", "is not supported yet (allowed: false)", ""});
  }
  if (config.run.overwrite && !config.checkpoint.resume_from_checkpoint.empty()) {
    problems.push_back({"overwrite", "and resume_from_checkpoint contradict each other", "give one of them"});
  }
  const DataOptions& data = config.data;
  if (data.with_prior_preservation && data.class_prompt.empty()) {
    problems.push_back({"class_prompt", "is empty, and with_prior_preservation needs it", ""});
  }
  std::error_code status;
  if (data.with_prior_preservation && std::filesystem::is_regular_file(data.class_data_dir, status)) {
    problems.push_back({"class_data_dir", "is not a folder (got " + data.class_data_dir + ")", ""});
  }
  check_micro_batch(config.run, problems);
  check_schedule(config, problems);
  check_device(config, problems);
  check_ranks(problems);
}

}  // namespace sdtune::train
