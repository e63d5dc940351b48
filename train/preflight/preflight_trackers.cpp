// The checks of what a run is reported to: packages, an interpreter, the address of a webhook.
#include "train/dist/rank_env.h"
#include "train/preflight/preflight_checks.h"
#include "train/track/notify.h"
#include "train/track/tracker_check.h"

namespace sdtune::train {

namespace {

// The other ranks report nothing; a rank that does not know which it is, is refused elsewhere.
bool reports() {
  try {
    return read_rank_env().rank == 0;
  } catch (const ConfigError&) {
    return true;
  }
}

}  // namespace

void check_trackers(const TrainConfig& config, std::vector<Problem>& problems) {
  const std::vector<Problem> misfits = observe_problems(config.observe);
  append(problems, misfits);
  if (!misfits.empty() || !reports()) return;
  append(problems, tracker_problems(config.observe));
  append(problems, notify_problems(config.rental.notify));
}

}  // namespace sdtune::train
