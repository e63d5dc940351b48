// Passes what a run tells on to Python callbacks.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>
#include <string>
#include <vector>

#include "train/observe/observer.h"
#include "train/run/train.h"

namespace sdtune::python {

// Called without the interpreter lock, which it takes for each callback. The first exception of a callback asks the run
// to save and stop; no callback is called after it.
class PythonObserver : public train::Observer {
 public:
  // None, or something to call.
  struct Callbacks {
    pybind11::object on_preparation, on_start, on_phase, on_generation, on_step, on_checkpoint, on_validation,
        on_identity, on_profile, on_warning, on_end;
  };

  PythonObserver(Callbacks callbacks, StopFlag& stop);

  void on_preparation(const train::PreparationEvent& event) override;
  void on_start(const train::RunSummary& summary) override;
  void on_phase(const std::string& name, std::int64_t done, std::int64_t total) override;
  void on_generation(const train::GenerationEvent& event) override;
  void on_step(const train::StepEvent& event) override;
  void on_checkpoint(const train::CheckpointEvent& event) override;
  void on_validation(const train::ValidationEvent& event) override;
  void on_identity(const train::IdentityEvent& event) override;
  void on_profile(const train::ProfileEvent& event) override;
  void on_warning(const Problem& problem) override;
  void on_end(const train::EndEvent& event) override;

  // Whether a callback raised.
  bool failed() const { return error_.has_value(); }
  // Raises what a callback raised, if one did. `failure`: the line of an error that ended the run after that, by which
  // its state may not be saved; it becomes a note of the exception. Needs the interpreter lock, as does metrics().
  void rethrow(const std::string& failure);
  // A dict for each step.
  pybind11::list metrics() const;

 private:
  template <typename... Arguments>
  void call(const pybind11::object& callback, const Arguments&... arguments);

  Callbacks callbacks_;
  StopFlag& stop_;
  std::optional<pybind11::error_already_set> error_;
  std::vector<train::StepEvent> steps_;
};

// The keys of metrics.jsonl, and the rest of the event.
pybind11::dict dict_of(const train::StepEvent& event);
// uint8 [H, W, 3] each.
pybind11::list images_of(const train::ValidationEvent& event);

}  // namespace sdtune::python
