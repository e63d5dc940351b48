// C++ errors as Python exceptions: sdtune.Error and its subtypes carry .problems and .exit_code.
#include <c10/util/Exception.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <exception>
#include <filesystem>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/base/error.h"
#include "model/base/error_type.h"
#include "model/base/json.h"
#include "model/core/hardware_fault.h"
#include "model/core/out_of_memory.h"
#include "python/src/module.h"

namespace py = pybind11;

namespace sdtune::python {

namespace {

// The exception types by their names, made once and never freed: a translator may run while the interpreter shuts down.
std::map<std::string, PyObject*>& types() {
  static auto* const made = new std::map<std::string, PyObject*>;
  return *made;
}

PyObject* add_type(py::module_& module, const char* name, const char* doc, PyObject* base) {
  PyObject* type = PyErr_NewExceptionWithDoc(("sdtune." + std::string(name)).c_str(), doc, base, nullptr);
  if (type == nullptr) throw py::error_already_set();
  module.add_object(name, type);
  types()[name] = type;
  return type;
}

void add_types(py::module_& module) {
  PyObject* error = add_type(module, "Error",
                             "What a user can mend. .problems lists every fault (where, what, hint); .exit_code is the "
                             "one that the program sdtune ends with.",
                             PyExc_Exception);
  py::setattr(error, "problems", py::tuple());
  py::setattr(error, "exit_code", py::int_(1));
  add_type(module, "ConfigError", "An option, its value or a combination is wrong.", error);
  add_type(module, "WeightError", "A model folder, weight or tokenizer file is wrong.", error);
  add_type(module, "DataError", "An image, caption or image folder is wrong.", error);
  add_type(module, "CheckpointError", "No valid checkpoint where one was asked for.", error);
  add_type(module, "OutOfMemoryError", "Memory of the host or device ran out.", error);
  add_type(module, "StorageError", "The disk refused a write.", error);
  add_type(module, "NonFiniteError", "Loss or gradients stayed non-finite, or an image is.", error);
  add_type(module, "PeerLostError", "Another rank died or does not respond, or a GPU reports that its hardware failed.",
           error);
}

// Names of files and texts that were cut need not be UTF-8, which Python's texts are: U+FFFD stands for what is not.
void raise(PyObject* type, const std::vector<Problem>& problems, ExitCode code, const std::string& text) {
  const py::object error = py::reinterpret_borrow<py::object>(type)(valid_text(text));
  error.attr("problems") = py::cast(problems);
  error.attr("exit_code") = static_cast<int>(code);
  PyErr_SetObject(type, error.ptr());
}

void raise_out_of_memory(const std::string& cause) {
  const Problem problem{
      "memory", cause,
      "train: a smaller micro_batch or resolution, or gradient_checkpointing; pipeline: fewer or smaller "
      "images"};
  raise(types().at("OutOfMemoryError"), {problem}, ExitCode::kOutOfMemory, problem.line());
}

void translate(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(std::move(thrown));
  } catch (const Error& error) {
    raise(types().at(error_type(error)), error.problems(), error.code(), error.what());
  } catch (const c10::Error& error) {
    if (model::is_out_of_memory(error)) {
      raise_out_of_memory(error.msg());
    } else if (const std::optional<Problem> fault = model::hardware_fault(error)) {
      raise(types().at("PeerLostError"), {*fault}, ExitCode::kPeerLost, fault->line());
    } else {  // a broken call contract: a shape, a device, an order of calls
      PyErr_SetString(PyExc_RuntimeError, error.what_without_backtrace());
    }
  } catch (const std::bad_alloc& error) {
    raise_out_of_memory(model::words_of(error));
  } catch (const std::filesystem::filesystem_error& error) {  // of a disk that fails, by the C++ library's functions
    const Problem problem{error.path1().string(), error.code().message(), ""};
    raise(types().at("StorageError"), {problem}, ExitCode::kStorage, problem.line());
  }
}

py::tuple problem_texts(const Problem& problem) {
  return py::make_tuple(valid_text(problem.where), valid_text(problem.what), valid_text(problem.hint));
}

Problem problem_of_texts(const py::tuple& texts) {
  return {texts[0].cast<std::string>(), texts[1].cast<std::string>(), texts[2].cast<std::string>()};
}

}  // namespace

void register_errors(py::module_& module) {
  py::class_<Problem>(module, "Problem", "One fault: where it is, what is wrong, what to do (may be empty).")
      .def(py::init<std::string, std::string, std::string>(), py::arg("where"), py::arg("what"), py::arg("hint") = "")
      .def_property_readonly(
          "where", [](const Problem& problem) { return valid_text(problem.where); },
          "A file (with :LINE) or an option.")
      .def_property_readonly(
          "what", [](const Problem& problem) { return valid_text(problem.what); },
          "What is wrong, with the value got and what is allowed.")
      .def_property_readonly(
          "hint", [](const Problem& problem) { return valid_text(problem.hint); }, "What to do; may be empty.")
      .def("__str__", [](const Problem& problem) { return valid_text(problem.line()); })
      .def("__repr__", [](const Problem& problem) { return "<Problem " + valid_text(problem.line()) + ">"; })
      .def(
          "__eq__",
          [](const Problem& one, const Problem& other) { return problem_texts(one).equal(problem_texts(other)); },
          py::is_operator())  // of anything else it says NotImplemented
      .def("__hash__", [](const Problem& problem) { return py::hash(problem_texts(problem)); })
      .def(py::pickle(&problem_texts, &problem_of_texts));  // and with it the errors that have it
  add_types(module);
  py::register_exception_translator(&translate);
}

}  // namespace sdtune::python
