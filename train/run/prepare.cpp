#include "train/run/prepare.h"

#include "model/core/device.h"
#include "train/run/build_run.h"
#include "train/run/photo_report.h"
#include "train/run/preflight.h"
#include "train/run/run_lock.h"
#include "train/run/stop_request.h"

namespace sdtune::train {

namespace {

// The contact sheet comes first: whoever does not like what it shows need not wait for the rest.
PreparedRun prepare_all(const TrainConfig& config, const std::vector<Observer*>& observers, const StopFlag& stop) {
  const RunFolder folder = run_folder(config);
  PreparedRun prepared;
  const PhotoReport report = examine_photos(config);
  write_contact_sheet(real_file_system(), folder.contact_sheet(), report, config.data);
  prepared.contact_sheet = folder.contact_sheet();
  prepared.cache = config.data.cache_dir.empty() ? folder.cache() : std::filesystem::path(config.data.cache_dir);
  real_file_system().create_directories(prepared.cache);
  const torch::Device device = model::parse_device(config.run.device, "device");
  const std::unique_ptr<Run> run =
      build_prepared_run(config, connect_ranks(RankEnv(), device, config.dist, ""), device, observers, stop);
  prepared.photos = static_cast<std::int64_t>(run->data.photos.photos.size());
  prepared.class_images = static_cast<std::int64_t>(run->data.class_images.size());
  prepared.notes = run->notes;
  return prepared;
}

}  // namespace

PreparedRun prepare(const TrainConfig& config, const std::vector<Observer*>& observers, const StopFlag& stop) {
  Diagnosis advice;
  refuse_problems(find_problems(config, advice));
  for (const Problem& warning : advice.warnings) tell(observers, &Observer::on_warning, warning);
  const RunFolder folder = run_folder(config);
  real_file_system().create_directories(folder.root);
  const RunLock lock(folder.lock());
  try {
    return prepare_all(config, observers, stop);
  } catch (const StopRequest& request) {
    PreparedRun stopped;
    stopped.code = exit_code_of(request.signal);
    return stopped;
  }
}

}  // namespace sdtune::train
