// Keyword arguments of a call that takes many: each is taken by name with its default, and what is left over is an
// error that names the nearest one.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "model/base/error.h"
#include "model/options/field.h"

namespace sdtune::python {

class KeywordReader {
 public:
  // `others`: arguments of the call that are not among the keywords; a name near one of them is a slip too.
  explicit KeywordReader(const pybind11::kwargs& keywords, std::vector<std::string> others = {})
      : keywords_(keywords), known_(std::move(others)) {}

  // The value, or `fallback` where the keyword is absent or None. Throws ConfigError where it is no `T`; `allowed` says
  // in words what is.
  template <typename T>
  T take(const char* name, T fallback, const char* allowed) {
    const pybind11::object value = take_object(name);
    if (value.is_none()) return fallback;
    try {
      return value.cast<T>();
    } catch (const pybind11::cast_error&) {
      throw ConfigError(
          name, "got " + std::string(pybind11::repr(value)).substr(0, 80) + " (allowed: " + std::string(allowed) + ")");
    }
  }

  // None where the keyword is absent.
  pybind11::object take_object(const char* name) {
    known_.emplace_back(name);
    return keywords_.contains(name) ? pybind11::object(keywords_[name]) : pybind11::none();
  }

  // Throws ConfigError for every keyword that was not taken.
  void finish() const {
    std::vector<Problem> problems;
    for (const auto& [key, value] : keywords_) {
      const std::string name = pybind11::str(key);
      if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
      const std::string near = nearest_name(name, known_);
      problems.push_back({name, "unknown argument", near.empty() ? "" : "did you mean " + near + "?"});
    }
    if (!problems.empty()) throw ConfigError(std::move(problems));
  }

 private:
  pybind11::kwargs keywords_;
  std::vector<std::string> known_;
};

}  // namespace sdtune::python
