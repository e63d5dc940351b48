#include "train/prove/prove_context.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "model/base/error.h"
#include "model/files/file_system.h"

namespace sdtune::train {

namespace {

// The loss scale of fp16 may have to halve as often before the first step has finite gradients.
constexpr std::int64_t kSpareSteps = 16;
// Small enough that a step of every weight by it leaves the next losses comparable, large enough to be seen beside
// float32's rounding.
constexpr double kRate = 1e-5;
constexpr std::int64_t kValidationImages = 2;
constexpr std::int64_t kClassImages = 8;  // enough for prior preservation to run
// By a SIGKILL that is none of ours, which comes after a limit alone: the kernel's, when the host's memory runs out.
constexpr int kKilled = 128 + SIGKILL;

}  // namespace

std::chrono::duration<double> ProveContext::limit() const {
  const std::chrono::duration<double> longest = kLongestPiece;
  if (!deadline) return longest;
  return std::clamp(std::chrono::duration<double>(*deadline - Clock::now()), std::chrono::duration<double>(0), longest);
}

std::filesystem::path ProveContext::write_config(const std::string& name, TrainConfig config) const {
  const std::filesystem::path file = work(name + ".yaml");
  write_file_atomically(real_file_system(), file, config_to_yaml(config.fields(), {}));
  return file;
}

Child ProveContext::piece(const std::string& kind, const std::string& name, const std::filesystem::path& config,
                          std::vector<std::string> more) const {
  Child child;
  child.words = {program.string(), "prove-piece",   "--piece", kind,
                 "--config",       config.string(), "--count", std::to_string(recorded_steps)};
  child.words.insert(child.words.end(), more.begin(), more.end());
  child.log = work(name + ".log");
  return child;
}

PartResult ended_badly(const ProveContext& context, const std::string& part, const ChildrenEnd& end,
                       const std::vector<Child>& children, bool may_skip) {
  if (context.is_over() && (end.out_of_time || end.stopped)) {
    PartResult result = failed_part(part, "the time of this call was over");
    result.status = PartStatus::kUnfinished;
    return result;
  }
  if (end.out_of_time) {
    return failed_part(part, "did not end within " + std::to_string(kLongestPiece.count() / 60) + " minutes");
  }
  std::string words;
  bool out_of_memory = false;
  for (std::size_t i = 0; i < children.size(); ++i) {
    const int code = end.codes[i];
    if (code == 0) continue;
    const std::string said = "exit code " + std::to_string(code) + ": " + last_words(children[i].log);
    if (code == static_cast<int>(ExitCode::kStorage)) {
      throw StorageError(children[i].log.string(), "the part " + part + " ended with " + said,
                         "make room on the disk; the same command continues");
    }
    out_of_memory = out_of_memory || code == static_cast<int>(ExitCode::kOutOfMemory) || code == kKilled;
    if (words.empty()) words = said;
  }
  if (may_skip && out_of_memory) return skipped_part(part, "memory does not suffice here: " + words);
  return failed_part(part, words);
}

TrainConfig step_config(const ProveContext& context, const std::string& mixed_precision, const std::string& name) {
  TrainConfig config = context.config;
  config.run.method = "full";
  config.run.output = context.work(name + "-run").string();
  config.run.train_text_encoder = false;
  config.run.trainable_layers.clear();
  config.run.train_batch_size = 2;
  config.run.gradient_accumulation_steps = 1;
  config.run.micro_batch = "1";
  config.run.gradient_checkpointing = true;
  config.run.max_train_steps = context.recorded_steps + kSpareSteps;
  config.run.num_train_epochs.reset();
  config.data.with_prior_preservation = false;
  config.data.auto_caption_rate = 0;
  config.data.caption_dropout_rate = 0;
  config.objective = ObjectiveOptions();
  config.optim = OptimOptions();
  config.optim.learning_rate = kRate;
  config.precision = PrecisionOptions();
  config.precision.mixed_precision = mixed_precision;
  config.observe = ObserveOptions();
  config.identity = IdentityOptions();
  config.dist.shard = "none";  // every rank records what it has of each parameter
  return config;
}

TrainConfig dreambooth_config(const ProveContext& context) {
  TrainConfig config = context.config;
  config.run.output = context.work("dreambooth").string();
  config.run.max_train_steps = context.steps;
  config.run.num_train_epochs.reset();
  config.data.num_class_images = std::min(config.data.num_class_images, kClassImages);
  config.observe.validation_prompt = config.data.instance_prompt;
  config.observe.validation_data_dir = config.data.images;
  config.observe.validation_steps = context.steps;
  config.observe.num_validation_images = kValidationImages;
  config.identity = IdentityOptions();
  config.identity.identity_classifier = context.config.identity.identity_classifier;  // it captions the photos
  return config;
}

}  // namespace sdtune::train
