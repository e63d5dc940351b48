// sdtune.train and sdtune.check, and what their callbacks get.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <csignal>
#include <exception>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "model/base/error.h"
#include "model/base/json.h"
#include "python/src/forked_process.h"
#include "python/src/interrupt_scope.h"
#include "python/src/keyword_reader.h"
#include "python/src/module.h"
#include "python/src/python_observer.h"
#include "train/config/run_folder.h"
#include "train/observe/observer.h"
#include "train/portrait/evaluate/classifier_reader_source.h"
#include "train/preflight/preflight.h"
#include "train/preflight/run_lock.h"
#include "train/run/train.h"
#include "train/track/python_interpreter.h"

namespace py = pybind11;

namespace sdtune::python {

namespace {

using namespace train;  // NOLINT: the events below

// What train() returns.
struct RunResult {
  TrainResult run;
  py::list metrics;  // a dict an optimizer step of this attempt
};

using Callbacks = PythonObserver::Callbacks;

// The callbacks of train, in the order of its signature: on_step comes first and by place too.
struct CallbackKeyword {
  const char* name;
  const char* type;  // as an annotation
  py::object Callbacks::*member;
};
constexpr CallbackKeyword kCallbacks[] = {
    {"on_step", "Callable[[StepEvent], object]", &Callbacks::on_step},
    {"on_start", "Callable[[RunSummary], object]", &Callbacks::on_start},
    {"on_preparation", "Callable[[PreparationEvent], object]", &Callbacks::on_preparation},
    {"on_phase", "Callable[[str, int, int], object]", &Callbacks::on_phase},
    {"on_generation", "Callable[[GenerationEvent], object]", &Callbacks::on_generation},
    {"on_checkpoint", "Callable[[CheckpointEvent], object]", &Callbacks::on_checkpoint},
    {"on_validation", "Callable[[ValidationEvent], object]", &Callbacks::on_validation},
    {"on_identity", "Callable[[IdentityEvent], object]", &Callbacks::on_identity},
    {"on_profile", "Callable[[ProfileEvent], object]", &Callbacks::on_profile},
    {"on_warning", "Callable[[Problem], object]", &Callbacks::on_warning},
    {"on_end", "Callable[[int, Path], object]", &Callbacks::on_end}};

// What sdtune/_signatures.py makes the signature of train from.
py::list callback_list() {
  py::list options;
  for (const CallbackKeyword& keyword : kCallbacks) {
    py::dict option;
    option["name"] = keyword.name;
    option["type"] = keyword.type;
    option["optional"] = true;
    option["default"] = py::none();
    options.append(option);
  }
  return options;
}

RunResult run_training(const TrainConfig& given, const py::object& on_step, const py::kwargs& keywords) {
  Callbacks callbacks;
  KeywordReader reader(keywords);
  const py::object asked = reader.take_object("_stop");
  for (const CallbackKeyword& keyword : kCallbacks) callbacks.*keyword.member = reader.take_object(keyword.name);
  reader.finish();
  callbacks.on_step = on_step;  // pybind11 takes it out of the keywords

  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
  const TrainConfig config = given;  // another thread may change the caller's while the lock is released
  StopFlag own;
  StopFlag& stop = asked.is_none() ? own : asked.cast<StopFlag&>();
  require_unforked_process();
  PythonObserver observer(std::move(callbacks), stop);
  InterruptScope interrupt(stop);
  RunResult result;
  std::string failure;  // after a callback had raised
  {
    const py::gil_scoped_release unlocked;
    try {
      result.run = train::train(config, {&observer}, evaluate::classifier_reader_source(), stop);
    } catch (const Error& error) {
      if (!observer.failed()) throw;
      failure = error.problems().front().line();
    } catch (const std::exception& error) {  // of a disk that fails, or of memory that ran out
      if (!observer.failed()) throw;
      const std::string text = error.what();
      failure = text.substr(0, text.find('\n'));
    }
  }
  observer.rethrow(failure);
  interrupt.finish();
  result.metrics = observer.metrics();
  return result;
}

py::object path_or_none(const std::filesystem::path& path) {
  return path.empty() ? py::object(py::none()) : py::cast(path);
}

// Lines that may name files, whose names need not be UTF-8.
std::vector<std::string> valid_texts(std::vector<std::string> lines) {
  for (std::string& line : lines) line = valid_text(line);
  return lines;
}

void add_preparation_events(py::module_& module) {
  py::class_<PreparationEvent>(module, "PreparationEvent", "What a run is about to do, before the base is loaded.")
      .def_property_readonly(
          "preset", [](const PreparationEvent& self) { return valid_text(self.preset); },
          "File and values of the preset; empty without one.")
      .def_property_readonly(
          "generation", [](const PreparationEvent& self) { return valid_texts(self.generation); },
          "A line for each kind of images to be generated.");
  py::class_<GenerationEvent>(module, "GenerationEvent",
                              "Class images that are about to be generated; the time is measured on two steps.")
      .def_readonly("images", &GenerationEvent::images, "Of all ranks.")
      .def_readonly("seconds", &GenerationEvent::seconds, "Of all of them.");
}

void add_events(py::module_& module) {
  py::class_<StepEvent>(module, "StepEvent", "One optimizer step that is over.")
      .def_readonly("step", &StepEvent::step, "Optimizer steps done, from 1.")
      .def_readonly("total_steps", &StepEvent::total_steps)
      .def_readonly("epoch", &StepEvent::epoch, "Passes over the photos so far.")
      .def_readonly("loss", &StepEvent::loss, "loss_instance + prior_loss_weight x loss_prior")
      .def_readonly("loss_instance", &StepEvent::loss_instance, "Mean over the photos of the effective batch.")
      .def_readonly("loss_prior", &StepEvent::loss_prior, "Mean over the class images; None without them.")
      .def_readonly("lr", &StepEvent::lr, "Learning rate of the UNet in this step.")
      .def_readonly("text_encoder_lr", &StepEvent::text_encoder_lr, "None while the text encoder is frozen.")
      .def_readonly("grad_norm", &StepEvent::grad_norm, "Over all trained parameters, before clipping.")
      .def_readonly("loss_scale", &StepEvent::loss_scale, "Of float16; else None.")
      .def_readonly("skipped", &StepEvent::skipped, "The float16 scaler threw this step away.")
      .def_readonly("images_per_s", &StepEvent::images_per_s, "Photos a second, all ranks.")
      .def_readonly("time", &StepEvent::time, "Seconds since 1970 (UTC) when the step ended.")
      .def_readonly("elapsed", &StepEvent::elapsed, "Seconds since this attempt's first step began.")
      .def_readonly("max_memory_bytes", &StepEvent::max_memory_bytes, "Highest so far, of the device or process.")
      .def_readonly("communication_share", &StepEvent::communication_share,
                    "Of several ranks, of the step before: the share of the slowest rank's time that it waited for "
                    "collectives; else None.")
      .def_readonly("straggler_ratio", &StepEvent::straggler_ratio,
                    "Of several ranks, of the step before: computing time of the slowest rank over the mean of all.")
      .def_readonly("slowest_rank", &StepEvent::slowest_rank, "That rank.")
      .def_readonly("overlapped_share", &StepEvent::overlapped_share,
                    "Of several ranks: the share of the gradients' bytes sent before the last fifth of backward.")
      .def("__repr__", [](const StepEvent& self) { return "StepEvent(" + std::string(py::str(dict_of(self))) + ")"; });
  py::class_<CheckpointEvent>(module, "CheckpointEvent", "A checkpoint that is on disk.")
      .def_readonly("step", &CheckpointEvent::step)
      .def_readonly("path", &CheckpointEvent::path, "Its folder.")
      .def_readonly("seconds", &CheckpointEvent::seconds, "Spent writing.")
      .def_readonly("waited", &CheckpointEvent::waited,
                    "Seconds that the steps waited for it: on a GPU it is written while they go on.");
  py::class_<ValidationEvent>(module, "ValidationEvent", "Validation of the weights of a step; 0 is the base.")
      .def_readonly("step", &ValidationEvent::step)
      .def_property_readonly("images", &images_of, "uint8 arrays [H, W, 3].")
      .def_property_readonly("pictures", &images_of, "The same as images, under its older name.")
      .def_readonly("prompts", &ValidationEvent::prompts, "One text per image.")
      .def_readonly("seeds", &ValidationEvent::seeds, "One seed per image.")
      .def_readonly("loss", &ValidationEvent::loss, "Mean over the held-out photos; None without validation_data_dir.");
  py::class_<IdentityEvent>(module, "IdentityEvent",
                            "Result of an identity evaluation; docs/likeness.md has the figures.")
      .def_readonly("step", &IdentityEvent::step, "0 is the base.")
      .def_readonly("identity", &IdentityEvent::identity, "0 like other people, 1 like another of the photos.")
      .def_readonly("accepted", &IdentityEvent::accepted, "Share of images accepted as the subject.")
      .def_readonly("prompt_fidelity", &IdentityEvent::prompt_fidelity, "Share of what was asked that is shown.")
      .def_readonly("leak", &IdentityEvent::leak, "Share of class images accepted as the subject.")
      .def_readonly("score", &IdentityEvent::score, "What steps are compared by.")
      .def_readonly("is_best", &IdentityEvent::is_best, "Best so far.");
}

py::dict phases_of(const ProfileEvent& event) {
  py::dict phases;
  for (const PhaseTotal& phase : event.phases) phases[py::str(phase.name)] = phase.seconds;
  return phases;
}

py::list operators_of(const ProfileEvent& event) {
  py::list operators;
  for (const OperatorTotal& one : event.operators) {
    operators.append(py::dict(py::arg("name") = one.name, py::arg("seconds") = one.seconds,
                              py::arg("calls") = one.calls, py::arg("flops") = one.flops));
  }
  return operators;
}

void add_profile_event(py::module_& module) {
  py::class_<ProfileEvent>(module, "ProfileEvent", "What the profile of some optimizer steps found; str() is a table.")
      .def_readonly("first_step", &ProfileEvent::first_step, "From 1.")
      .def_readonly("steps", &ProfileEvent::steps)
      .def_readonly("seconds", &ProfileEvent::seconds, "Of these steps.")
      .def_property_readonly("phases", &phases_of, "Seconds by name: load batch, forward, backward, ...")
      .def_property_readonly("operators", &operators_of,
                             "The longest first: name, seconds without the operators that it calls, calls, flops.")
      .def_property_readonly(
          "trace", [](const ProfileEvent& self) { return path_or_none(self.trace); },
          "For the viewers of Chrome and Perfetto; None where it could not be written.")
      .def("__str__", [](const ProfileEvent& self) { return profile_text(self, 10); });
}

void add_summary(py::module_& module) {
  py::class_<RunSummary>(module, "RunSummary", "What a run will do, told before its first step.")
      .def_readonly("output", &RunSummary::output, "The run folder.")
      .def_property_readonly(
          "base", [](const RunSummary& self) { return valid_text(self.base); }, "The model it starts from.")
      .def_readonly("pipeline_class", &RunSummary::pipeline_class)
      .def_readonly("method", &RunSummary::method)
      .def_readonly("components", &RunSummary::components, "The parts with trainable parameters.")
      .def_readonly("trained_parameters", &RunSummary::trainable_parameters)
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
      .def_property_readonly(
          "notes", [](const RunSummary& self) { return valid_texts(self.notes); }, "Further lines worth saying.");
}

void add_result(py::module_& module) {
  py::class_<RunResult>(module, "_TrainResult")  // sdtune/_results.py makes TrainResult of it
      .def_property_readonly("model_path", [](const RunResult& self) { return path_or_none(self.run.model_path); })
      .def_property_readonly("output", [](const RunResult& self) { return self.run.output; })
      .def_property_readonly("checkpoint", [](const RunResult& self) { return path_or_none(self.run.checkpoint); })
      .def_property_readonly("step", [](const RunResult& self) { return self.run.step; })
      .def_property_readonly("model_step", [](const RunResult& self) { return self.run.model_step; })
      .def_readonly("metrics", &RunResult::metrics);
}

// What sdtune/_background.py stops a run with, from any thread.
void add_stop_flag(py::module_& module) {
  py::class_<StopFlag>(module, "_StopFlag")
      .def(py::init<>())
      .def("request", [](StopFlag& self) { return self.request(SIGINT); })
      .def_property_readonly("requested", [](const StopFlag& self) { return self.requested().load(); });
}

constexpr const char* kTrainDoc =
    "Trains as `config` says and returns a TrainResult (model_path, output, checkpoint, step, metrics).\n\n"
    "Callbacks, all optional: on_preparation(PreparationEvent), on_start(RunSummary), on_phase(name, done, total), "
    "on_generation(GenerationEvent), on_step(StepEvent), on_checkpoint(CheckpointEvent), "
    "on_validation(ValidationEvent), on_identity(IdentityEvent), on_profile(ProfileEvent), on_warning(Problem), "
    "on_end(step, model_path). They run on the calling thread, between steps; an exception in one saves a checkpoint, "
    "stops the run and is raised "
    "here. Ctrl-C saves a checkpoint, then raises KeyboardInterrupt; train again with resume_from_checkpoint='latest' "
    "to resume. Other threads run meanwhile. Raises ConfigError, WeightError, DataError (all faults at once, nothing "
    "written), CheckpointError, StorageError, OutOfMemoryError, NonFiniteError, PeerLostError.";

}  // namespace

void register_train(py::module_& module) {
  add_preparation_events(module);
  add_events(module);
  add_profile_event(module);
  add_summary(module);
  add_result(module);
  add_stop_flag(module);
  module.def("_run_folder", [](const TrainConfig& config) { return run_folder(config).root; });
  module.def("_run_holder", [](const TrainConfig& config) { return RunLock::holder(run_folder(config).lock()); });
  module.def("_train_callbacks", &callback_list);
  const py::object executable = py::module_::import("sys").attr("executable");
  if (py::isinstance<py::str>(executable)) use_python(executable.cast<std::string>());
  module.def("train", &run_training, py::arg("config"), py::arg("on_step") = py::none(), kTrainDoc);
  module.def(
      "check",
      [](const TrainConfig& given) {
        // NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
        const TrainConfig config = given;  // another thread may change the caller's while the lock is released
        require_unforked_process();
        const py::gil_scoped_release unlocked;
        return find_problems(config, evaluate::classifier_reader_source());
      },
      py::arg("config"),
      "Every fault that train would find before it starts, as a list of Problem; empty when it would start.");
}

}  // namespace sdtune::python
