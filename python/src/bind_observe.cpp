// sdtune.RunLogs: metrics.jsonl, TensorBoard's event file and validation images, for those who write a loop of their
// own.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/base/json.h"
#include "model/files/file_system.h"
#include "python/src/keyword_reader.h"
#include "python/src/pixel_array.h"
#include "train/observe/event_file.h"
#include "train/observe/metrics_log.h"
#include "train/observe/preview.h"

namespace py = pybind11;

namespace sdtune::python {

namespace {

class RunLogs {
 public:
  RunLogs(const std::filesystem::path& output, std::int64_t first_step, std::int64_t attempt)
      : metrics_(real_file_system(), warn()), events_(warn()), preview_(real_file_system(), warn()) {
    real_file_system().create_directories(output);
    train::RunSummary summary;
    summary.output = output;
    summary.first_step = first_step;
    summary.attempt = attempt;
    for (train::Observer* observer : observers()) observer->on_start(summary);
  }

  void step(std::int64_t step, double loss, double loss_instance, const py::kwargs& others) {
    train::StepEvent event;
    event.step = step;
    event.loss = loss;
    event.loss_instance = loss_instance;
    KeywordReader keywords(others, {"step", "loss", "loss_instance"});
    const auto number = [&](const char* key) {
      return keywords.take<std::optional<double>>(key, std::nullopt, "a number");
    };
    event.epoch = number("epoch").value_or(0);
    event.loss_prior = number("loss_prior");
    event.lr = number("lr").value_or(0);
    event.text_encoder_lr = number("text_encoder_lr");
    event.grad_norm = number("grad_norm").value_or(0);
    event.loss_scale = number("loss_scale");
    event.images_per_s = number("images_per_s").value_or(0);
    event.time = number("time").value_or(0);
    event.max_memory_bytes = static_cast<std::int64_t>(number("max_memory_bytes").value_or(0));
    keywords.finish();
    for (train::Observer* observer : observers()) observer->on_step(event);
  }

  void validation(std::int64_t step, const std::vector<py::object>& images, std::vector<std::string> prompts,
                  std::vector<std::uint64_t> seeds) {
    if (prompts.size() != images.size() || seeds.size() != images.size()) {
      throw DataError("validation", "one prompt and one seed an image");
    }
    train::ValidationEvent event{step, {}, std::move(prompts), std::move(seeds)};
    for (const py::object& array : images) {
      event.images.push_back(image_of(array, "pictures[" + std::to_string(event.images.size()) + "]"));
    }
    for (train::Observer* observer : observers()) observer->on_validation(event);
  }

  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  train::Warn warn() {
    return [this](const Problem& problem) { warnings_.push_back(valid_text(problem.line())); };
  }
  std::vector<train::Observer*> observers() { return {&metrics_, &events_, &preview_}; }

  std::vector<std::string> warnings_;
  train::MetricsLog metrics_;
  train::EventFile events_;
  train::Preview preview_;
};

}  // namespace

void register_observe(py::module_& module) {
  py::class_<RunLogs>(
      module, "RunLogs",
      "The logs of a run folder: metrics.jsonl, a TensorBoard event file, samples/.\n\nfirst_step is the "
      "number of steps that are done already: lines of later steps are dropped, and TensorBoard forgets "
      "them. A log that cannot be written never raises; see warnings.")
      .def(py::init<const std::filesystem::path&, std::int64_t, std::int64_t>(), py::arg("output"),
           py::arg("first_step") = 0, py::arg("attempt") = 1)
      .def("step", &RunLogs::step, py::arg("step"), py::arg("loss"), py::arg("loss_instance"),
           "Logs one optimizer step, counted from 1. Keywords: epoch, loss_prior, lr, text_encoder_lr, grad_norm, "
           "loss_scale, images_per_s, time (s since 1970), max_memory_bytes.")
      .def("validation", &RunLogs::validation, py::arg("step"), py::arg("pictures"), py::arg("prompts"),
           py::arg("seeds"), "Logs images, uint8 [H, W, 3], generated with the weights of `step`.")
      .def_property_readonly("warnings", &RunLogs::warnings, "What could not be written, a line each.");
}

}  // namespace sdtune::python
