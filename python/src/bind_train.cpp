// sdtune.train and sdtune.check, and what their callbacks are told.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "model/base/error.h"
#include "python/src/interrupt_scope.h"
#include "python/src/keyword_reader.h"
#include "python/src/module.h"
#include "python/src/python_observer.h"
#include "train/observe/observer.h"
#include "train/run/preflight.h"
#include "train/run/train.h"

namespace py = pybind11;

namespace sdtune::python {

namespace {

using namespace train;  // NOLINT: the events below

// What train() returns.
struct RunResult {
  TrainResult run;
  py::list metrics;  // a dict an optimizer step of this attempt
};

RunResult run_training(const TrainConfig& given, const py::object& on_step, const py::kwargs& keywords) {
  PythonObserver::Callbacks callbacks;
  callbacks.on_step = on_step;
  KeywordReader reader(keywords, {"on_step"});
  callbacks.on_start = reader.take_object("on_start");
  callbacks.on_phase = reader.take_object("on_phase");
  callbacks.on_checkpoint = reader.take_object("on_checkpoint");
  callbacks.on_validation = reader.take_object("on_validation");
  callbacks.on_identity = reader.take_object("on_identity");
  callbacks.on_warning = reader.take_object("on_warning");
  callbacks.on_end = reader.take_object("on_end");
  reader.finish();

  const TrainConfig config = given;  // another thread may change the caller's while the lock is released
  StopFlag stop;
  PythonObserver observer(std::move(callbacks), stop);
  InterruptScope interrupt(stop);
  RunResult result;
  {
    const py::gil_scoped_release unlocked;
    try {
      result.run = train::train(config, {&observer}, stop);
    } catch (const Error&) {
      if (!observer.failed()) throw;
    }
  }
  observer.rethrow();
  interrupt.finish();
  result.metrics = observer.metrics();
  return result;
}

py::object path_or_none(const std::filesystem::path& path) {
  return path.empty() ? py::object(py::none()) : py::cast(path);
}

void add_events(py::module_& module) {
  py::class_<StepEvent>(module, "StepEvent", "One optimizer step that is over.")
      .def_readonly("step", &StepEvent::step, "Optimizer steps done, from 1.")
      .def_readonly("total_steps", &StepEvent::total_steps)
      .def_readonly("epoch", &StepEvent::epoch, "Passes over the photos so far.")
      .def_readonly("loss", &StepEvent::loss, "loss_instance + prior_loss_weight x loss_prior")
      .def_readonly("loss_instance", &StepEvent::loss_instance, "Mean over the photos of the effective batch.")
      .def_readonly("loss_prior", &StepEvent::loss_prior, "Mean over the class pictures; None without them.")
      .def_readonly("lr", &StepEvent::lr, "Learning rate of the UNet in this step.")
      .def_readonly("text_encoder_lr", &StepEvent::text_encoder_lr, "None while the text encoder is frozen.")
      .def_readonly("grad_norm", &StepEvent::grad_norm, "Over all trained parameters, before clipping.")
      .def_readonly("loss_scale", &StepEvent::loss_scale, "Of float16; else None.")
      .def_readonly("skipped", &StepEvent::skipped, "The float16 scaler threw this step away.")
      .def_readonly("images_per_s", &StepEvent::images_per_s, "Photos a second, all ranks.")
      .def_readonly("time", &StepEvent::time, "Seconds since 1970 (UTC) when the step ended.")
      .def_readonly("elapsed", &StepEvent::elapsed, "Seconds since this attempt's first step began.")
      .def_readonly("max_memory_bytes", &StepEvent::max_memory_bytes, "Highest so far, of the device or process.")
      .def("__repr__", [](const StepEvent& self) { return "StepEvent(" + std::string(py::str(dict_of(self))) + ")"; });
  py::class_<CheckpointEvent>(module, "CheckpointEvent", "A checkpoint that is on disk.")
      .def_readonly("step", &CheckpointEvent::step)
      .def_readonly("path", &CheckpointEvent::path, "Its folder.")
      .def_readonly("seconds", &CheckpointEvent::seconds, "Spent writing.");
  py::class_<ValidationEvent>(module, "ValidationEvent", "A look at the weights of a step; 0 is the base.")
      .def_readonly("step", &ValidationEvent::step)
      .def_property_readonly("pictures", &pictures_of, "uint8 arrays [H, W, 3].")
      .def_readonly("prompts", &ValidationEvent::prompts, "A text a picture.")
      .def_readonly("seeds", &ValidationEvent::seeds, "A seed a picture.")
      .def_readonly("loss", &ValidationEvent::loss, "Mean over the held-out photos; None without validation_data_dir.");
  py::class_<IdentityEvent>(module, "IdentityEvent", "What a look at likeness found; docs/likeness.md has the figures.")
      .def_readonly("step", &IdentityEvent::step, "0 is the base.")
      .def_readonly("identity", &IdentityEvent::identity, "0 like other people, 1 like another of the photos.")
      .def_readonly("accepted", &IdentityEvent::accepted, "Share of pictures taken for the subject.")
      .def_readonly("prompt_fidelity", &IdentityEvent::prompt_fidelity, "Share of what was asked that is shown.")
      .def_readonly("leak", &IdentityEvent::leak, "Share of class pictures taken for the subject.")
      .def_readonly("score", &IdentityEvent::score, "What steps are compared by.")
      .def_readonly("is_best", &IdentityEvent::is_best, "Best so far.");
}

void add_summary(py::module_& module) {
  py::class_<RunSummary>(module, "RunSummary", "What a run will do, told before its first step.")
      .def_readonly("output", &RunSummary::output, "The run folder.")
      .def_readonly("base", &RunSummary::base, "The model it starts from.")
      .def_readonly("pipeline_class", &RunSummary::pipeline_class)
      .def_readonly("method", &RunSummary::method)
      .def_readonly("components", &RunSummary::components, "What is trained.")
      .def_readonly("trained_parameters", &RunSummary::trained_parameters)
      .def_readonly("total_parameters", &RunSummary::total_parameters)
      .def_readonly("device", &RunSummary::device)
      .def_readonly("dtype", &RunSummary::dtype, "Of the computation.")
      .def_readonly("images", &RunSummary::images, "Photos that are trained on.")
      .def_readonly("left_out", &RunSummary::left_out, "Files of the folder that are not.")
      .def_readonly("class_images", &RunSummary::class_images)
      .def_readonly("resolution", &RunSummary::resolution, "px")
      .def_readonly("batch", &RunSummary::batch, "Effective: over accumulation and ranks.")
      .def_readonly("ranks", &RunSummary::ranks)
      .def_readonly("seed", &RunSummary::seed)
      .def_readonly("first_step", &RunSummary::first_step, "Optimizer steps done by earlier attempts.")
      .def_readonly("total_steps", &RunSummary::total_steps)
      .def_readonly("attempt", &RunSummary::attempt, "From 1.")
      .def_readonly("notes", &RunSummary::notes, "Further lines worth saying.");
}

void add_result(py::module_& module) {
  py::class_<RunResult>(module, "TrainResult", "What a finished run leaves.")
      .def_property_readonly(
          "model_path", [](const RunResult& self) { return path_or_none(self.run.model_path); },
          "The result, a diffusers folder.")
      .def_property_readonly(
          "output", [](const RunResult& self) { return self.run.output; }, "The run folder.")
      .def_property_readonly(
          "checkpoint", [](const RunResult& self) { return path_or_none(self.run.checkpoint); },
          "The newest checkpoint's folder, or None.")
      .def_property_readonly(
          "step", [](const RunResult& self) { return self.run.step; }, "Optimizer steps done.")
      .def_property_readonly(
          "model_step", [](const RunResult& self) { return self.run.model_step; },
          "The step whose weights model_path holds: the last one, or the best look's.")
      .def_readonly("metrics", &RunResult::metrics, "A dict for each optimizer step of this attempt.");
}

constexpr const char* kTrainDoc =
    "Trains as `config` says and returns a TrainResult (model_path, output, checkpoint, step, metrics).\n\n"
    "Callbacks, all optional: on_start(RunSummary), on_phase(name, done, total), on_step(StepEvent), "
    "on_checkpoint(CheckpointEvent), on_validation(ValidationEvent), on_identity(IdentityEvent), on_warning(Problem), "
    "on_end(step, model_path). "
    "They run on the calling thread, between steps; an exception in one saves a checkpoint, stops the run and is "
    "raised "
    "here. Ctrl-C saves a checkpoint, then raises KeyboardInterrupt; train again with resume_from_checkpoint='latest' "
    "to "
    "go on. Other threads run meanwhile. Raises ConfigError, WeightError, DataError (all faults at once, nothing "
    "written), CheckpointError, StorageError, OutOfMemoryError, NonFiniteError, PeerLostError.";

}  // namespace

void register_train(py::module_& module) {
  add_events(module);
  add_summary(module);
  add_result(module);
  module.def("train", &run_training, py::arg("config"), py::arg("on_step") = py::none(), kTrainDoc);
  module.def(
      "check", [](const TrainConfig& config) { return find_problems(TrainConfig(config)); }, py::arg("config"),
      py::call_guard<py::gil_scoped_release>(),
      "Every fault that train would find before it starts, as a list of Problem; empty when it would start.");
}

}  // namespace sdtune::python
