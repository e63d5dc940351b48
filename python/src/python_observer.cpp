#include "python/src/python_observer.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "model/base/error.h"
#include "model/base/json.h"
#include "model/base/stop_flag.h"

namespace py = pybind11;

namespace sdtune::python {

namespace {

constexpr const char* kThenFailed = "sdtune: then the run failed: ";  // python/sdtune/_train.py looks for it

void check_callable(const char* name, const py::object& callback) {
  if (callback.is_none() || PyCallable_Check(callback.ptr()) != 0) return;
  throw ConfigError(name, "got " + std::string(py::repr(callback)).substr(0, 80) + " (allowed: a function, or None)");
}

}  // namespace

PythonObserver::PythonObserver(Callbacks callbacks, StopFlag& stop) : callbacks_(std::move(callbacks)), stop_(stop) {
  check_callable("on_preparation", callbacks_.on_preparation);
  check_callable("on_start", callbacks_.on_start);
  check_callable("on_phase", callbacks_.on_phase);
  check_callable("on_generation", callbacks_.on_generation);
  check_callable("on_step", callbacks_.on_step);
  check_callable("on_checkpoint", callbacks_.on_checkpoint);
  check_callable("on_validation", callbacks_.on_validation);
  check_callable("on_identity", callbacks_.on_identity);
  check_callable("on_profile", callbacks_.on_profile);
  check_callable("on_warning", callbacks_.on_warning);
  check_callable("on_end", callbacks_.on_end);
}

template <typename... Arguments>
void PythonObserver::call(const py::object& callback, const Arguments&... arguments) {
  if (callback.is_none() || failed()) return;
  const py::gil_scoped_acquire locked;
  try {
    callback(arguments...);
  } catch (const py::error_already_set& error) {
    error_.emplace(error);
    stop_.request(kCallbackFailed);
  }
}

void PythonObserver::on_preparation(const train::PreparationEvent& event) {
  call(callbacks_.on_preparation, event);
}

void PythonObserver::on_generation(const train::GenerationEvent& event) {
  call(callbacks_.on_generation, event);
}

void PythonObserver::on_start(const train::RunSummary& summary) {
  call(callbacks_.on_start, summary);
}

void PythonObserver::on_phase(const std::string& name, std::int64_t done, std::int64_t total) {
  call(callbacks_.on_phase, valid_text(name), done, total);  // "loading BASE", and a folder need not be UTF-8
}

void PythonObserver::on_step(const train::StepEvent& event) {
  steps_.push_back(event);
  call(callbacks_.on_step, event);
}

void PythonObserver::on_checkpoint(const train::CheckpointEvent& event) {
  call(callbacks_.on_checkpoint, event);
}

void PythonObserver::on_validation(const train::ValidationEvent& event) {
  call(callbacks_.on_validation, event);
}

void PythonObserver::on_identity(const train::IdentityEvent& event) {
  call(callbacks_.on_identity, event);
}

void PythonObserver::on_profile(const train::ProfileEvent& event) {
  call(callbacks_.on_profile, event);
}

void PythonObserver::on_warning(const Problem& problem) {
  call(callbacks_.on_warning, problem);
}

void PythonObserver::on_end(const train::EndEvent& event) {
  call(callbacks_.on_end, event.step, event.model_path);
}

void PythonObserver::rethrow(const std::string& failure) {
  if (!failed()) return;
  if (!failure.empty()) {
    const std::string note = std::string(kThenFailed) + failure;  // of names of files, which need not be UTF-8
    const auto text = py::reinterpret_steal<py::object>(
        PyUnicode_DecodeUTF8(note.data(), static_cast<py::ssize_t>(note.size()), "replace"));
    error_->value().attr("add_note")(text);
  }
  throw py::error_already_set(*error_);
}

py::list PythonObserver::metrics() const {
  py::list list;
  for (const train::StepEvent& event : steps_) list.append(dict_of(event));
  return list;
}

py::dict dict_of(const train::StepEvent& event) {
  py::dict dict;
  dict["step"] = event.step;
  dict["epoch"] = event.epoch;
  dict["loss"] = event.loss;
  dict["loss_instance"] = event.loss_instance;
  dict["loss_prior"] = event.loss_prior;
  dict["lr"] = event.lr;
  dict["text_encoder_lr"] = event.text_encoder_lr;
  dict["grad_norm"] = event.grad_norm;
  dict["loss_scale"] = event.loss_scale;
  dict["skipped"] = event.skipped;
  dict["images_per_s"] = event.images_per_s;
  dict["time"] = event.time;
  dict["elapsed"] = event.elapsed;
  dict["max_memory_bytes"] = event.max_memory_bytes;
  dict["communication_share"] = event.communication_share;
  dict["straggler_ratio"] = event.straggler_ratio;
  dict["slowest_rank"] = event.slowest_rank;
  dict["overlapped_share"] = event.overlapped_share;
  return dict;
}

py::list images_of(const train::ValidationEvent& event) {
  py::list list;
  for (const Image& image : event.images) {
    py::array_t<std::uint8_t> array({image.height, image.width, std::int64_t{3}});
    std::copy(image.rgb.begin(), image.rgb.end(), array.mutable_data());
    list.append(array);
  }
  return list;
}

}  // namespace sdtune::python
