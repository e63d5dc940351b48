// The parts of the Python module, a bind_*.cpp each. Every part registers what its line names; the C++ types are stated
// where another part takes or returns them.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "model/schedule/scheduler.h"

namespace sdtune::python {

void register_errors(pybind11::module_& module);     // Error and its subtypes, Problem
void register_random(pybind11::module_& module);     // Generator = at::Generator; the submodule testing
void register_tokenizer(pybind11::module_& module);  // CLIPTokenizer = ClipTokenizer
void register_models(pybind11::module_& module);     // UNet2DConditionModel, AutoencoderKL, CLIPTextModel: classes over
                                                     // model::...Impl, held by std::shared_ptr
void register_schedulers(pybind11::module_& module);  // a class each diffusers name, over model::Scheduler
void register_image(pybind11::module_& module);       // load_image, resize_image, ...
void register_observe(pybind11::module_& module);     // RunLogs
void register_config(pybind11::module_& module);      // TrainConfig
void register_pipeline(pybind11::module_& module);    // StableDiffusionPipeline, StableDiffusionXLPipeline
void register_plan(pybind11::module_& module);
void register_train(pybind11::module_& module);                // train, StepEvent, TrainResult
void register_testing_lora(pybind11::module_& testing);        // lora_pass, in the submodule testing
void register_testing_optimizers(pybind11::module_& testing);  // Optimizer, in the submodule testing

// The Python object of a scheduler, of the class that has its name; and the scheduler in such an object (TypeError for
// anything else). Defined in bind_schedulers.cpp.
pybind11::object wrap_scheduler(std::unique_ptr<model::Scheduler> scheduler);
model::Scheduler& unwrap_scheduler(pybind11::handle object);

}  // namespace sdtune::python
