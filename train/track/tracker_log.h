// The run for wandb, MLflow and trackio: events for the side process scripts/trackers/tracker_process.py, which calls
// their packages. Whatever happens there, the run goes on as it would without it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "model/base/json.h"
#include "model/files/file_system.h"
#include "train/config/observe_options.h"
#include "train/observe/observer.h"
#include "train/observe/step_lines.h"
#include "train/track/script_process.h"

namespace sdtune::train {

// In the run folder: trackers.json holds each tracker's id of this run, by which a resumed attempt goes on with it;
// trackers.log what their packages print.
class TrackerLog : public Observer {
 public:
  // `warn` may be empty; it is told each kind of failure once.
  TrackerLog(const ObserveOptions& options, FileSystem& files, Warn warn);

  void on_start(const RunSummary& summary) override;          // starts the side process; config.yaml must be written
  void on_step(const StepEvent& event) override;              // the names of TensorBoard
  void on_validation(const ValidationEvent& event) override;  // its PNG files must be written (preview.h)
  void on_identity(const IdentityEvent& event) override;
  // Waits at most tracker_timeout until all is delivered, and says what is not.
  void on_end(const EndEvent& event) override;

 private:
  void start(const RunSummary& summary);
  Json start_message(const RunSummary& summary) const;
  void send(const Json& message);
  void send_scalars(std::int64_t step, double time, const Json& values);
  void read_replies();
  void take(const Json& reply);
  void keep_id(const std::string& tracker, const std::string& id);
  void say(const std::string& what, const std::string& hint) const;
  void say_once_that_it_is_gone();

  ObserveOptions options_;
  FileSystem& files_;
  Warn warn_;
  std::filesystem::path folder_;  // of the run
  std::unique_ptr<ScriptProcess> process_;
  Json ids_ = Json::object();
  std::int64_t sent_ = 0, lost_ = 0, done_ = 0;  // messages: given to the process, not taken by it, handled by it
  bool said_gone_ = false;
};

}  // namespace sdtune::train
