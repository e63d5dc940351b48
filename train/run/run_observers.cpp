#include "train/run/run_observers.h"

#include <utility>

#include "train/config/run_folder.h"
#include "train/observe/event_file.h"
#include "train/observe/metrics_log.h"
#include "train/observe/preview.h"
#include "train/observe/report_page.h"
#include "train/observe/validation_log.h"
#include "train/run/attempt_ledger.h"
#include "train/track/tracker_check.h"
#include "train/track/tracker_log.h"

namespace sdtune::train {

RunObservers::RunObservers(const TrainConfig& config, const std::vector<Observer*>& callers,
                           const std::vector<Observer*>& more, bool is_first, std::int64_t started) {
  if (!is_first) return;
  all_ = callers;
  all_.insert(all_.end(), more.begin(), more.end());
  const Warn warn = [this](const Problem& problem) { tell(all_, &Observer::on_warning, problem); };
  add(std::make_unique<MetricsLog>(real_file_system(), warn));
  add(std::make_unique<Preview>(real_file_system(), warn));
  add(std::make_unique<ValidationLog>(real_file_system(), warn));
  add(std::make_unique<AttemptLedger>(real_file_system(), run_folder(config), started, warn));
  add(std::make_unique<ReportPage>(real_file_system(), config.observe.price_per_hour, warn));
  if (reports_to_tensorboard(config.observe)) add(std::make_unique<EventFile>(warn));
  if (!side_trackers(config.observe).names.empty()) {
    add(std::make_unique<TrackerLog>(config.observe, real_file_system(), warn));
  }
}

void RunObservers::add(std::unique_ptr<Observer> observer) {
  all_.push_back(observer.get());
  own_.push_back(std::move(observer));
}

}  // namespace sdtune::train
