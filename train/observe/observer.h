// What a run tells the world: the progress bar, metrics.jsonl, TensorBoard, validation images and Python's on_step
// are observers, one a file. Only rank 0 has any. Every call comes from the training thread, in the order of the steps.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/base/image.h"
#include "train/observe/profile_event.h"

namespace sdtune::train {

// Said once, before anything is generated: what the preset set, and what will be generated.
struct PreparationEvent {
  std::string preset;                   // "lora_sd15.yaml: rank 16, ..."; empty: the base has no preset
  std::vector<std::string> generation;  // "200 class images of 50 steps, before training; ...", ...
};

// Said before class images of a prompt are generated, estimated from two steps of the sampler and one decoding.
struct GenerationEvent {
  std::int64_t images = 0;  // all ranks
  double seconds = 0;       // of all of them
};

// Said once, before the first step: what will be done.
struct RunSummary {
  std::filesystem::path output;         // the run folder
  std::string base;                     // the model it starts from, as the user named it
  std::string pipeline_class;           // StableDiffusionPipeline, ...
  std::string method;                   // full, lora
  std::vector<std::string> components;  // with trainable parameters: unet, text_encoder, ...
  std::int64_t trainable_parameters = 0;
  std::int64_t total_parameters = 0;
  std::string device;             // cpu, cuda:0
  std::string device_name;        // as the system calls it; may be empty
  std::string dtype;              // of the computation: float32, bfloat16, float16
  std::int64_t images = 0;        // photos that are trained on
  std::int64_t left_out = 0;      // files of the folder that are not
  std::int64_t class_images = 0;  // 0 without prior preservation
  std::int64_t resolution = 0;    // px
  std::int64_t batch = 0;         // effective: train_batch_size x gradient_accumulation_steps x ranks
  std::int64_t ranks = 1;
  std::uint64_t seed = 0;
  std::int64_t first_step = 0;     // optimizer steps already done by earlier attempts
  std::int64_t total_steps = 0;    // optimizer steps when the run is complete
  std::int64_t attempt = 1;        // 1 for a fresh run, one more at each resume
  std::vector<std::string> notes;  // further lines worth saying: defaults taken, cache switched off, ...
};

// Said once, after the first few steps: what the rest of them will take, estimated from those.
struct EstimateEvent {
  std::int64_t steps_left = 0;
  double seconds_per_step = 0;  // without checkpoints and validation images
};

// One optimizer step that is over. On a GPU the events come some steps late, because reading a number at once would
// make the device wait; none is left out, and all have come before on_checkpoint, on_validation and on_end.
struct StepEvent {
  std::int64_t step = 0;  // counted from 1; the number of optimizer steps done
  std::int64_t total_steps = 0;
  double epoch = 0;                       // passes over the photos so far
  double loss = 0;                        // what was minimised: loss_instance + prior_loss_weight x loss_prior
  double loss_instance = 0;               // mean over the photos of the effective batch, all ranks
  std::optional<double> loss_prior;       // mean over the class images; unset without prior preservation
  double lr = 0;                          // of the UNet, in this step
  std::optional<double> text_encoder_lr;  // unset while the text encoder is frozen
  double grad_norm = 0;                   // over all trained parameters, before clipping
  std::optional<double> loss_scale;       // of fp16
  bool skipped = false;                   // the fp16 scaler threw this step's gradients away
  double images_per_s = 0;                // instance images, all ranks
  double time = 0;                        // s since 1970 (UTC), when the step ended
  double elapsed = 0;                     // s since this attempt's first step began, steady clock
  std::int64_t max_memory_bytes = 0;      // the highest so far: of the device, or of the process on a CPU
  // Of several ranks, of the newest step that all had finished (docs/cloud.md); unset for one and in the first steps.
  std::optional<double> communication_share, straggler_ratio, overlapped_share;
  std::optional<std::int64_t> slowest_rank;
};

// Written beside the steps, as on a GPU, it is told when it is on disk: later steps may have been told before it.
struct CheckpointEvent {
  std::int64_t step = 0;
  std::filesystem::path path;      // the checkpoint's folder
  double seconds = 0, waited = 0;  // s of writing, and that the steps waited: for all of it, or for a copy in memory
};

// Validation of the weights of `step`; 0 is the base. images, prompts and seeds have equal lengths, which may be 0.
struct ValidationEvent {
  std::int64_t step = 0;
  std::vector<Image> images;
  std::vector<std::string> prompts;
  std::vector<std::uint64_t> seeds;
  std::optional<double> loss = {};  // mean over the held-out photos; unset without validation_data_dir
};

// What an identity evaluation found. docs/likeness.md says what the figures are.
struct IdentityEvent {
  std::int64_t step = 0;  // 0 is the base
  double identity = 0, accepted = 0, prompt_fidelity = 0, leak = 0;
  double score = 0;      // what steps are compared by
  bool is_best = false;  // so far
};

enum class RunEnd { kDone, kStopped, kFailed };

struct EndEvent {
  RunEnd end = RunEnd::kDone;
  std::int64_t step = 0;                  // optimizer steps done
  std::int64_t model_step = 0;            // the step whose weights the result holds; 0 unless kDone
  std::filesystem::path model_path = {};  // the result's folder; empty unless kDone
  double seconds = 0;                     // of this attempt
  ExitCode code = ExitCode::kDone;
  std::string cause = {};                 // why it ended, in words: "all steps are done", "SIGTERM", ...
  bool is_partial = false;                // kDone before the last step: the budget is spent
  std::filesystem::path checkpoint = {};  // the newest; empty when none was written
};

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_preparation(const PreparationEvent&) {}
  virtual void on_generation(const GenerationEvent&) {}
  virtual void on_start(const RunSummary&) {}
  // A long part that is not a step ("reading photos"), again at each piece: `done` of `total`; 0: not known.
  virtual void on_phase(const std::string& /*name*/, std::int64_t /*done*/, std::int64_t /*total*/) {}
  virtual void on_estimate(const EstimateEvent&) {}
  virtual void on_step(const StepEvent&) {}
  virtual void on_checkpoint(const CheckpointEvent&) {}
  virtual void on_profile(const ProfileEvent&) {}
  virtual void on_validation(const ValidationEvent&) {}
  virtual void on_identity(const IdentityEvent&) {}
  // Something that the user should know and that does not stop the run.
  virtual void on_warning(const Problem&) {}
  virtual void on_end(const EndEvent&) {}
};

// Tells every observer; the list is empty on all ranks but the first.
template <typename Event>
void tell(const std::vector<Observer*>& observers, void (Observer::*method)(const Event&), const Event& event) {
  for (Observer* observer : observers) (observer->*method)(event);
}
inline void tell_phase(const std::vector<Observer*>& observers, const std::string& name, std::int64_t done,
                       std::int64_t total) {
  for (Observer* observer : observers) observer->on_phase(name, done, total);
}

}  // namespace sdtune::train
