// What identity evaluation needs of a run, and what is made of it: the reader that its options ask for, the subjects as
// that reader takes them, and the digest of all that a score depends on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/base/stop_flag.h"
#include "model/pipeline/bundle.h"
#include "train/checkpoint/run_state.h"
#include "train/config/run_folder.h"
#include "train/config/train_config.h"
#include "train/data/photo_folder.h"
#include "train/dist/process_group.h"
#include "train/identity/identity_evaluator.h"
#include "train/identity/portrait_reader_source.h"
#include "train/identity/reference_photos.h"
#include "train/optim/trained_parameter.h"

namespace sdtune::train {

inline constexpr std::int64_t kImagesAtOnce = 8;  // images of an evaluation that are generated at once

// All of it outlives what is made of it.
struct IdentityContext {
  const TrainConfig& config;
  const RunFolder& folder;
  const std::vector<Photo>& photos;
  IdentityInputs inputs;
  ResumeFingerprint fingerprint;  // always_recorded(): by it, evaluations are found again
  model::ModelBundle& bundle;
  const std::vector<TrainedParameter>& parameters;  // whose weights are kept where they are the best so far
  ProcessGroup& group;
  torch::Device device;
  torch::Dtype dtype;
  std::int64_t total_steps;
  const PortraitReaderSource& portrait_readers;
  const StopFlag& stop;
};

// Throws WeightError for a classifier that cannot be used.
std::unique_ptr<IdentityReader> make_identity_reader(const IdentityContext& context);

// The subjects of the run with their photos, as that reader takes them. Throws DataError for a photo that is not there
// any more.
std::vector<IdentitySubject> identity_subjects(const IdentityContext& context);

// px of an image of an evaluation: the base's own, for a portrait classifier at most what it reads and at least 64.
std::int64_t identity_image_side(const IdentityContext& context);

// A digest of everything besides the weights that a score depends on.
std::string identity_eval_digest(const IdentityContext& context);

}  // namespace sdtune::train
