// sdtune.load_image, resize_image, crop_image, save_png, image_grid: images as uint8 arrays [H, W, 3].
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/base/error.h"
#include "model/files/file_system.h"
#include "model/image/bucket.h"
#include "model/image/crop.h"
#include "model/image/grid.h"
#include "model/image/image_read.h"
#include "model/image/png_write.h"
#include "model/image/resample.h"
#include "python/src/pixel_array.h"

namespace py = pybind11;

namespace sdtune::python {

namespace {

py::array_t<std::uint8_t> to_array(const Image& image) {
  py::array_t<std::uint8_t> array({image.height, image.width, std::int64_t{3}});
  std::copy(image.rgb.begin(), image.rgb.end(), array.mutable_data());
  return array;
}

py::array_t<std::uint8_t> load_image(const std::filesystem::path& path) {
  Image image;
  {
    const py::gil_scoped_release unlocked;
    image = model::read_image(path);
  }
  return to_array(image);
}

py::tuple verify(const std::filesystem::path& path) {
  model::ImageInfo info;
  {
    const py::gil_scoped_release unlocked;
    info = model::verify_image(read_file(path), path.string());
  }
  return py::make_tuple(info.seen_width(), info.seen_height(), model::format_name(info.format));
}

py::array_t<std::uint8_t> resize(const py::object& array, std::int64_t width, std::int64_t height,
                                 const std::string& resample, const std::optional<std::array<double, 4>>& box) {
  Image image = image_of(array, "image");
  const model::Filter filter = model::parse_filter(resample, "resample");
  {
    const py::gil_scoped_release unlocked;
    if (box) {
      image = model::resized(image, width, height, filter, {(*box)[0], (*box)[1], (*box)[2], (*box)[3]});
    } else {
      image = model::resized(image, width, height, filter);
    }
  }
  return to_array(image);
}

py::array_t<std::uint8_t> crop(const py::object& array, std::int64_t resolution, const std::string& resample) {
  Image image = image_of(array, "image");
  const model::Filter filter = model::parse_filter(resample, "resample");
  {
    const py::gil_scoped_release unlocked;
    image = model::cropped(image, model::center_crop(image.width, image.height, resolution), filter);
  }
  return to_array(image);
}

py::tuple bucket(std::int64_t width, std::int64_t height, const model::BucketRule& rule) {
  const model::ImageSize size = model::choose_bucket(width, height, rule);
  return py::make_tuple(size.width, size.height);
}

void save(const std::filesystem::path& path, const py::object& array, const std::map<std::string, std::string>& texts) {
  const Image image = image_of(array, "image");
  std::vector<model::PngText> entries;
  for (const auto& [key, value] : texts) entries.push_back({key, value});
  const py::gil_scoped_release unlocked;
  model::write_png(real_file_system(), path, image, entries);
}

py::array_t<std::uint8_t> grid(const std::vector<py::object>& arrays, std::int64_t columns, std::int64_t gap,
                               std::vector<std::string> captions) {
  std::vector<Image> images;
  for (const py::object& array : arrays) {
    images.push_back(image_of(array, "images[" + std::to_string(images.size()) + "]"));
  }
  return to_array(model::make_grid(images, {columns, gap, std::move(captions)}));
}

}  // namespace

void register_image(py::module_& module) {
  module.def("load_image", &load_image, py::arg("path"),
             "Reads a JPEG, PNG, WebP or (where libheif is) HEIC file as uint8 [H, W, 3], sRGB, turned as its EXIF "
             "orientation asks, alpha laid on "
             "white.\n\nRaises DataError naming the file and the cause: truncated, damaged, animated, another format, "
             "more than 200 megapixels.");
  module.def(
      "verify_image", &verify, py::arg("path"),
      "(width, height, format) of an image as it is to be seen, in px, after reading all of its data; raises what "
      "load_image would raise.");
  module.def(
      "resize_image", &resize, py::arg("image"), py::arg("width"), py::arg("height"), py::arg("resample") = "lanczos",
      py::arg("box") = py::none(),
      "Resizes uint8 [H, W, 3] to [height, width, 3] (px) as Pillow's Image.resize does: antialiased 'bilinear', "
      "'bicubic' or 'lanczos'.\n\nbox = (left, top, right, bottom) in px takes a part of the image. Raises "
      "ConfigError for an unknown filter, DataError for a box beyond the image.");
  module.def("crop_image", &crop, py::arg("image"), py::arg("resolution"), py::arg("resample") = "lanczos",
             "The square [resolution, resolution, 3] that training takes from uint8 [H, W, 3]: shorter side resized to "
             "resolution (px), then the centre cropped.");
  module.def(
      "choose_bucket",
      [](std::int64_t width, std::int64_t height, std::int64_t resolution, std::int64_t min_bucket_reso,
         std::int64_t max_bucket_reso, std::int64_t bucket_reso_steps, bool bucket_no_upscale) {
        return bucket(width, height,
                      {resolution, min_bucket_reso, max_bucket_reso, bucket_reso_steps, bucket_no_upscale});
      },
      py::arg("width"), py::arg("height"), py::arg("resolution"), py::arg("min_bucket_reso"),
      py::arg("max_bucket_reso"), py::arg("bucket_reso_steps"), py::arg("bucket_no_upscale") = true,
      "(width, height) in px of the bucket that enable_bucket gives a photo of that size: of all multiples of "
      "bucket_reso_steps between the limits with at most resolution x resolution pixels the one in which the whole "
      "photo "
      "would be shown largest. Raises ConfigError where the limits allow none.");
  module.def("save_png", &save, py::arg("path"), py::arg("image"), py::arg("texts") = py::dict(),
             "Writes uint8 [H, W, 3] as PNG, whole or not at all, with text entries (key to value).\n\nRaises "
             "StorageError (as Error) when the disk refuses, DataError for an empty image or a bad key.");
  module.def("image_grid", &grid, py::arg("images"), py::arg("columns") = 0, py::arg("gap") = 4,
             py::arg("captions") = std::vector<std::string>(),
             "Lays uint8 [H, W, 3] images side by side, row by row, on white; columns 0 is as square as possible, gap "
             "in px, captions none or one an image.");
}

}  // namespace sdtune::python
