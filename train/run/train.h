// A training run from configuration to result: what `sdtune train` and sdtune.train() call.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/base/stop_flag.h"
#include "train/config/train_config.h"
#include "train/identity/portrait_reader_source.h"
#include "train/observe/observer.h"

namespace sdtune::train {

struct TrainResult {
  // kDone; kInterrupted, kTerminated or (kOtherRankFailed) kPeerLost when the flag stopped it, state saved
  ExitCode code = ExitCode::kDone;
  std::int64_t step = 0;             // optimizer steps done
  std::int64_t model_step = 0;       // the step whose weights model_path holds: `step`, or the best one; 0 unless kDone
  std::filesystem::path output;      // the run folder
  std::filesystem::path model_path;  // the result, a diffusers folder; empty unless kDone
  std::filesystem::path checkpoint;  // the newest checkpoint; empty when none was written
  std::string cause;                 // why it ended, in words
  bool is_partial = false;           // kDone before the last step: max_hours or max_cost is spent
};

// Runs `config` to its end or until `stop` asks. In a process that torchrun started it is one rank of the run; only
// rank 0 calls the observers. Throws the types of model/base/error.h: what find_problems (preflight.h) reports before
// anything is written, later CheckpointError, StorageError, OutOfMemoryError, NonFiniteError, PeerLostError. A failure
// after the start leaves last_error.json in the run folder, until another attempt begins. notify and on_finish follow
// every end, before this returns, but for a lost peer (138) where sdtune launch will restart the ranks.
//
// `portrait_readers` makes what reads renders of synthetic people for identity evaluation (classifier_reader_source.h).
TrainResult train(const TrainConfig& config, const std::vector<Observer*>& observers,
                  const PortraitReaderSource& portrait_readers, StopFlag& stop);

// notify and on_finish of a run that ends here with this error, on the first rank; what fails is a warning. train() has
// called it for all that it ends; a caller that refuses the configuration before that calls it itself.
void finish_run(const TrainConfig& config, const Error& error, const std::vector<Observer*>& observers);

}  // namespace sdtune::train
