// sdtune.DDIMScheduler and the others: a Python class each diffusers name.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "model/base/error.h"
#include "model/schedule/align_your_steps.h"
#include "model/schedule/ddim.h"
#include "model/schedule/ddpm.h"
#include "model/schedule/deis_multistep.h"
#include "model/schedule/dpm_solver_multistep.h"
#include "model/schedule/dpm_solver_sde.h"
#include "model/schedule/euler_ancestral_discrete.h"
#include "model/schedule/euler_discrete.h"
#include "model/schedule/heun_discrete.h"
#include "model/schedule/lcm.h"
#include "model/schedule/lms_discrete.h"
#include "model/schedule/pndm.h"
#include "model/schedule/scheduler.h"
#include "model/schedule/scheduler_config.h"
#include "model/schedule/unipc_multistep.h"
#include "python/src/array_caster.h"
#include "python/src/compute_scope.h"
#include "python/src/json_convert.h"
#include "python/src/module.h"

namespace py = pybind11;

namespace sdtune::python {

namespace {

using model::Scheduler;
using Generators = std::variant<at::Generator, std::vector<at::Generator>>;

// For a step() that was given neither: most schedulers need no draw, and those that do must not invent one.
class NoNoise : public model::NoiseSource {
 public:
  torch::Tensor draw(torch::IntArrayRef, torch::Dtype, const torch::Device&) override {
    throw ConfigError("generator", "this scheduler draws noise at each step", "give step() a generator or the noise");
  }
};

std::unique_ptr<model::NoiseSource> noise_source(const std::optional<Generators>& generator,
                                                 const std::optional<torch::Tensor>& noise) {
  if (generator && noise) throw ConfigError("noise", "is given together with generator (allowed: one of them)");
  if (noise) return std::make_unique<model::FixedNoise>(*noise);
  if (!generator) return std::make_unique<NoNoise>();
  if (const auto* one = std::get_if<at::Generator>(&*generator)) return std::make_unique<model::GeneratorNoise>(*one);
  return std::make_unique<model::GeneratorNoise>(std::get<std::vector<at::Generator>>(*generator));
}

torch::Tensor step(Scheduler& scheduler, const torch::Tensor& model_output, double t, const torch::Tensor& sample,
                   const std::optional<Generators>& generator, const std::optional<torch::Tensor>& noise, double eta) {
  const ComputeScope scope;
  const std::unique_ptr<model::NoiseSource> source = noise_source(generator, noise);
  return scheduler.step(model_output, t, sample, *source, {eta});
}

void set_timesteps(Scheduler& scheduler, std::optional<std::int64_t> num_inference_steps,
                   const std::optional<std::vector<std::int64_t>>& timesteps) {
  if (num_inference_steps.has_value() == timesteps.has_value()) {
    throw ConfigError("timesteps", "or num_inference_steps is needed (allowed: one of them)");
  }
  if (timesteps) {
    scheduler.set_timesteps(*timesteps);
  } else {
    scheduler.set_timesteps(*num_inference_steps);
  }
}

std::vector<std::int64_t> ays_timesteps(const Scheduler& scheduler, std::int64_t num_inference_steps, bool xl) {
  return model::align_your_steps(scheduler.noise_schedule(), xl, num_inference_steps);
}

// A config with keywords over it. Keys that were defaults of the class it comes from do not count (diffusers' rule).
Json merged_config(const py::object& config, const py::kwargs& keywords) {
  Json merged = config.is_none() ? Json::object() : model::given_keys(json_of(config));
  const Json given = json_of(keywords);
  for (const auto& [key, value] : given.items()) merged[key] = value;
  return merged;
}

template <class T>
void add_scheduler(py::module_& module, const char* doc) {
  const auto make = [](const Json& config) {
    return py::cast(model::make_scheduler(T::kClassName, config, T::kClassName));
  };
  py::class_<T, Scheduler> type(module, T::kClassName, doc);
  type.def(
      py::init([](const py::kwargs& keywords) {
        const Json config = merged_config(py::none(), keywords);
        auto scheduler = model::make_scheduler(T::kClassName, config, T::kClassName);
        return std::unique_ptr<T>(static_cast<T*>(scheduler.release()));
      }),
      "Made of config keys, named and defaulted as in diffusers. Raises WeightError for a key or value that is not "
      "supported.");
  type.def_static(
      "from_config",
      [make](const py::object& config, const py::kwargs& keywords) { return make(merged_config(config, keywords)); },
      py::arg("config") = py::none(),
      "Made of another scheduler's config (a dict) with keywords over it. Raises WeightError for a key or value that "
      "is "
      "not supported.");
}

void add_scheduler(py::module_& module) {
  py::class_<Scheduler>(module, "Scheduler", "From noise to a sample in a few calls of a model; see diffusers.")
      .def_property_readonly(
          "config", [](const Scheduler& self) { return object_of(self.config()); }, "Every key with its value, a dict.")
      .def("set_timesteps", &set_timesteps, py::arg("num_inference_steps") = std::nullopt,
           py::arg("timesteps") = std::nullopt, py::call_guard<ComputeScope>(),
           "Starts a run of a number of steps, or over given timesteps. Raises ConfigError for what the class cannot "
           "do.")
      .def("set_begin_index", &Scheduler::set_begin_index, py::arg("begin_index") = 0,
           "Where in `timesteps` the run begins, after set_timesteps: for image to image. Without it that is the place "
           "of the first timestep, of which there may be several. Raises ConfigError for a place that is not there.")
      .def("ays_timesteps", &ays_timesteps, py::arg("num_inference_steps") = 10, py::arg("xl") = false,
           py::call_guard<ComputeScope>(),
           "The timesteps of \"align your steps\" for Stable Diffusion 1, or XL, to give to set_timesteps or a "
           "pipeline.")
      .def_property_readonly("timesteps", &Scheduler::timesteps, "[N] int64 or float32, descending; None before a run.")
      .def_property_readonly("sigmas", &Scheduler::sigmas, "[N + 1] float32, or None for a class that has none.")
      .def_property_readonly("init_noise_sigma", &Scheduler::init_noise_sigma,
                             "The standard deviation of the noise that a run starts from.")
      .def("scale_model_input", &Scheduler::scale_model_input, py::arg("sample"), py::arg("timestep"),
           py::call_guard<ComputeScope>(), "[B, ...] -> [B, ...]: what the model is given for this sample.")
      .def("step", &step, py::arg("model_output"), py::arg("timestep"), py::arg("sample"),
           py::arg("generator") = std::nullopt, py::arg("noise") = std::nullopt, py::arg("eta") = 0.0,
           "[B, ...] -> [B, ...]: the sample at the next timestep. Random numbers come from `generator` (one for the "
           "batch, or a "
           "list with one for each sample) or are `noise`. `eta` is DDIM's.")
      .def("add_noise", &Scheduler::add_noise, py::arg("original_samples"), py::arg("noise"), py::arg("timesteps"),
           py::call_guard<ComputeScope>(), "[B, ...] with noise [B, ...] added at timesteps [B].")
      .def("__repr__", [](const Scheduler& self) { return self.class_name() + " " + self.config().dump(); });
}

}  // namespace

void register_schedulers(py::module_& module) {
  add_scheduler(module);
  add_scheduler<model::DdpmScheduler>(module, "Ancestral sampling (Ho et al. 2020).");
  add_scheduler<model::DdimScheduler>(module, "Denoising diffusion implicit models (Song et al. 2021).");
  add_scheduler<model::PndmScheduler>(module, "Pseudo numerical methods: PLMS and PRK (Liu et al. 2022).");
  add_scheduler<model::EulerDiscreteScheduler>(module, "Euler steps in sigma (Karras et al. 2022).");
  add_scheduler<model::EulerAncestralDiscreteScheduler>(module, "Euler steps with fresh noise at each.");
  add_scheduler<model::HeunDiscreteScheduler>(module, "Heun's second-order steps in sigma (Karras et al. 2022).");
  add_scheduler<model::LmsDiscreteScheduler>(module, "Linear multistep steps in sigma, of order 4.");
  add_scheduler<model::DpmSolverMultistepScheduler>(module, "DPM-Solver++ and its SDE form (Lu et al. 2022).");
  add_scheduler<model::DpmSolverSdeScheduler>(module, "DPM++ SDE: two calls a step, with the noise of one motion.");
  add_scheduler<model::UniPcMultistepScheduler>(module, "Predictor and corrector in one call (Zhao et al. 2023).");
  add_scheduler<model::DeisMultistepScheduler>(module, "Exponential integrator in log rho (Zhang and Chen 2022).");
  add_scheduler<model::LcmScheduler>(module, "Few steps of a latent consistency model (Luo et al. 2023).");
}

py::object wrap_scheduler(std::unique_ptr<Scheduler> scheduler) {
  return py::cast(std::move(scheduler));
}

Scheduler& unwrap_scheduler(py::handle object) {
  if (!py::isinstance<Scheduler>(object)) throw py::type_error("a scheduler of sdtune is needed");
  return object.cast<Scheduler&>();
}

}  // namespace sdtune::python
