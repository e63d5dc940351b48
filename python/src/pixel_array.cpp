#include "python/src/pixel_array.h"

#include <pybind11/numpy.h>

#include <cstdint>

#include "model/base/error.h"

namespace py = pybind11;

namespace sdtune::python {

namespace {

constexpr const char* kBytesAllowed = " (allowed: uint8, or whole numbers from 0 to 255)";
constexpr const char* kBytesHint =
    "output_type=\"pil\" gives such images; multiply an array in [0, 1] by 255 and round it";

// NumPy's letter of the dtype: 'b' is bool, 'u' and 'i' are whole numbers.
void require_bytes(const py::array& array, const std::string& name) {
  const char kind = array.dtype().kind();
  if (kind != 'b' && kind != 'u' && kind != 'i') {
    throw ConfigError(name, "got numbers of type " + std::string(py::str(array.dtype())) + kBytesAllowed, kBytesHint);
  }
  if (kind == 'b' || (kind == 'u' && array.itemsize() == 1) || array.size() == 0) return;
  const py::int_ low(array.attr("min")());
  const py::int_ high(array.attr("max")());
  if (low < py::int_(0) || high > py::int_(255)) {
    throw ConfigError(
        name, "got numbers from " + std::string(py::str(low)) + " to " + std::string(py::str(high)) + kBytesAllowed,
        kBytesHint);
  }
}

}  // namespace

Image image_of(const py::object& object, const std::string& name) {
  const py::array given = py::array::ensure(object);  // lists of numbers, and what has __array__, as well
  if (!given) throw ConfigError(name, "is no array of numbers" + std::string(kBytesAllowed));
  if (given.ndim() != 3 || given.shape(2) != 3) throw DataError(name, "expected a uint8 array of shape [H, W, 3]");
  require_bytes(given, name);
  const auto bytes = py::array_t<std::uint8_t, py::array::c_style | py::array::forcecast>::ensure(given);
  if (!bytes) throw ConfigError(name, "cannot be read as uint8" + std::string(kBytesAllowed));
  return Image{bytes.shape(1), bytes.shape(0), {bytes.data(), bytes.data() + bytes.size()}};
}

}  // namespace sdtune::python
