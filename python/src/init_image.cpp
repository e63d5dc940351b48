#include "python/src/init_image.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/base/error.h"
#include "model/core/image_tensor.h"
#include "python/src/array_caster.h"

namespace py = pybind11;

namespace sdtune::python {

namespace {

constexpr const char* kAllowed =
    "allowed: a PIL image, a list of them, an array [H, W, 3] or [B, H, W, 3] in [0, 1], or latents [B, C, h, w]";

bool is_pil(const py::handle& object) {
  return py::hasattr(object, "convert") && py::hasattr(object, "resize") && py::hasattr(object, "mode");
}

bool has_alpha(const py::object& image, const std::string& mode) {
  return mode == "RGBA" || mode == "LA" || mode == "PA" || mode == "RGBa" ||
         image.attr("info").attr("__contains__")("transparency").cast<bool>();
}

// A PIL image in RGB as image_read.h reads its file: 16 bits of grey keep their high byte, which Pillow's convert clips
// at 255, and alpha is laid on white, where convert shows the hidden colours.
py::object rgb_of(const py::object& image) {
  const auto mode = image.attr("mode").cast<std::string>();
  if (mode == "I" || mode == "F") {
    throw ConfigError("image", "got a PIL image of mode " + mode + ", whose white is unknown (allowed: 8 bits, I;16)",
                      "sdtune.load_image reads a file of 16 bits");
  }
  const py::module_ pillow = py::module_::import("PIL.Image");
  if (mode.starts_with("I;16")) {
    const py::object grey = py::module_::import("numpy").attr("asarray")(image);
    const py::object high = grey.attr("__rshift__")(8).attr("astype")("uint8");
    return pillow.attr("fromarray")(high).attr("convert")("RGB");
  }
  if (!has_alpha(image, mode)) return image.attr("convert")("RGB");
  const py::object size = image.attr("size");
  const py::object white = pillow.attr("new")("RGBA", size, py::make_tuple(255, 255, 255, 255));
  const py::object colors = image.attr("convert")("RGBA");
  return pillow.attr("alpha_composite")(white, colors).attr("convert")("RGB");
}

// [H, W, 3], 0..255
torch::Tensor pixels_of(const py::object& image, std::int64_t factor, std::int64_t height, std::int64_t width) {
  py::object rgb = rgb_of(image);
  const auto own = rgb.attr("size").cast<std::pair<std::int64_t, std::int64_t>>();  // width, height
  const std::pair<std::int64_t, std::int64_t> wanted{width > 0 ? width : own.first - own.first % factor,
                                                     height > 0 ? height : own.second - own.second % factor};
  if (wanted != own) {
    const py::object lanczos = py::module_::import("PIL.Image").attr("Resampling").attr("LANCZOS");
    rgb = rgb.attr("resize")(py::make_tuple(wanted.first, wanted.second), py::arg("resample") = lanczos);
  }
  const std::optional<torch::Tensor> pixels = tensor_of(py::module_::import("numpy").attr("array")(rgb));
  if (!pixels) throw ConfigError("image", "cannot be read as pixels");
  return *pixels;
}

torch::Tensor pixels_of_all(const py::object& image, std::int64_t factor, std::int64_t height, std::int64_t width) {
  if (is_pil(image)) return pixels_of(image, factor, height, width).unsqueeze(0);
  std::vector<torch::Tensor> images;
  for (const py::handle& one : image) {
    images.push_back(pixels_of(py::reinterpret_borrow<py::object>(one), factor, height, width));
    if (images.back().sizes() != images.front().sizes()) {
      throw ConfigError("image", "the images differ in size", "give height and width to bring them to one");
    }
  }
  return torch::stack(images);
}

bool is_list_of_pil(const py::object& image) {
  return py::isinstance<py::list>(image) && py::len(image) > 0 && is_pil(py::list(image)[0]);
}

}  // namespace

torch::Tensor read_init_image(const py::object& image, const model::ModelBundle& bundle, std::int64_t height,
                              std::int64_t width) {
  torch::Tensor pixels;
  if (is_pil(image) || is_list_of_pil(image)) {
    pixels = pixels_of_all(image, bundle.vae_factor(), height, width);
  } else {
    const std::optional<torch::Tensor> given = tensor_of(image);
    if (!given) throw ConfigError("image", "got " + std::string(py::repr(image)).substr(0, 80) + " (" + kAllowed + ")");
    pixels = given->dim() == 3 ? given->unsqueeze(0) : *given;
  }
  const std::int64_t channels = bundle.vae->config().in_channels;
  if (pixels.dim() != 4 || pixels.numel() == 0 ||
      (pixels.size(3) != channels && pixels.size(1) != bundle.vae->config().latent_channels)) {
    throw ConfigError("image", std::string("has another shape (") + kAllowed + ")");
  }
  if (pixels.size(3) != channels) return pixels;
  const bool is_bytes = pixels.scalar_type() == torch::kUInt8;
  if (is_bytes) return model::normalized_pixels(pixels);
  const torch::Tensor unit = pixels.to(torch::kFloat32);
  if (unit.min().item<float>() < 0 || unit.max().item<float>() > 1) {
    throw ConfigError("image", "has values outside 0..1 (" + std::string(kAllowed) + ")");
  }
  return (unit * 2 - 1).permute({0, 3, 1, 2});
}

}  // namespace sdtune::python
