#include "train/run/prepare.h"

#include "model/core/device.h"
#include "model/core/tf32_scope.h"
#include "train/dist/stop_request.h"
#include "train/preflight/machine_warnings.h"
#include "train/preflight/preflight.h"
#include "train/preflight/run_lock.h"
#include "train/run/build_run.h"

namespace sdtune::train {

namespace {

// The contact sheet comes first: whoever does not like what it shows need not wait for the rest.
PreparedRun prepare_all(const TrainConfig& config, const std::vector<Observer*>& observers, const Preflight& preflight,
                        const StopFlag& stop) {
  const RunFolder folder = run_folder(config);
  PreparedRun prepared;
  write_contact_sheet(real_file_system(), folder.contact_sheet(), preflight.photos, config.data);
  prepared.contact_sheet = folder.contact_sheet();
  prepared.cache = config.data.cache_dir.empty() ? folder.cache() : std::filesystem::path(config.data.cache_dir);
  real_file_system().create_directories(prepared.cache);
  const torch::Device device = model::parse_device(config.run.device, "device");
  const model::Tf32Scope tf32(config.precision.allow_tf32);  // as `train`, which takes these latents for its own
  const std::unique_ptr<Run> run =
      build_prepared_run(config, connect_ranks(RankEnv(), device, config.dist, ""), device, preflight, observers, stop);
  prepared.photos = preflight.photos;
  prepared.photos.kept.reset();
  prepared.class_images = static_cast<std::int64_t>(run->data.class_images.size());
  prepared.notes = run->notes;
  return prepared;
}

}  // namespace

PreparedRun prepare(const TrainConfig& config, const std::vector<Observer*>& observers,
                    const PortraitReaderSource& portrait_readers, const StopFlag& stop) {
  const Preflight preflight = run_preflight(config, portrait_readers, PhotoUse::kPrepare);
  refuse_problems(preflight);
  for (const Problem& warning : machine_warnings(config)) tell(observers, &Observer::on_warning, warning);
  for (const Problem& warning : preflight.photos.diagnosis.warnings) tell(observers, &Observer::on_warning, warning);
  const RunFolder folder = run_folder(config);
  real_file_system().create_directories(folder.root);
  const RunLock lock(folder.lock());
  try {
    return prepare_all(config, observers, preflight, stop);
  } catch (const StopRequest& request) {
    PreparedRun stopped;
    stopped.code = exit_code_of(request.signal);
    return stopped;
  }
}

}  // namespace sdtune::train
