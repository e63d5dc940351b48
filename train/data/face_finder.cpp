#include "train/data/face_finder.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "model/base/error.h"
#include "model/base/json.h"
#include "model/files/file_system.h"
#include "model/files/install_paths.h"
#include "model/image/resample.h"

namespace sdtune::train {

namespace {

namespace fs = std::filesystem;

// In this order: the first has almost no false faces, the second finds more.
constexpr const char* kCascades[] = {"haarcascade_frontalface_alt.xml", "haarcascade_frontalface_alt2.xml"};
constexpr const char* kDebianFolder = "/usr/share/opencv4/haarcascades";
// px: detectors want faces of 40 px, and their time grows with the area.
constexpr std::int64_t kSmallestSearched = 256;  // the shorter side
constexpr std::int64_t kLargestSearched = 400;   // the longer side, unless the shorter one would be too short

std::vector<std::string> arguments_of(const std::vector<fs::path>& models, const fs::path& recognizer) {
  std::vector<std::string> words;
  if (!recognizer.empty()) {
    words.emplace_back("--recognizer");
    words.push_back(recognizer.string());
  }
  for (const fs::path& model : models) words.push_back(model.string());
  return words;
}

fs::path installed_cascade(const char* name) {
  const fs::path own = find_shared_file(fs::path("haarcascades") / name);
  if (!own.empty()) return own;
  const fs::path system = fs::path(kDebianFolder) / name;
  return is_file(system) ? system : fs::path();
}

}  // namespace

std::vector<fs::path> face_models(const std::string& face_model) {
  if (!face_model.empty()) {
    const std::string ending = fs::path(face_model).extension().string();
    if (!is_file(face_model)) {
      throw ConfigError("face_model", "is no file (got " + face_model + "; allowed: a cascade .xml or a YuNet .onnx)");
    }
    if (ending != ".xml" && ending != ".onnx") {
      throw ConfigError("face_model", "is of an unknown kind (got " + face_model + "; allowed: .xml, .onnx)");
    }
    return {face_model};
  }
  std::vector<fs::path> models;
  for (const char* name : kCascades) {
    const fs::path path = installed_cascade(name);
    if (path.empty()) throw DataError(name, "is not installed", "install the package opencv-data, or give face_model");
    models.push_back(path);
  }
  return models;
}

model::ImageBox head_around(const model::ImageBox& face, std::int64_t width, std::int64_t height) {
  constexpr double kUp = 0.6, kDown = 0.25, kSide = 0.35;
  const double left = std::max(0.0, face.left - kSide * face.width);
  const double top = std::max(0.0, face.top - kUp * face.height);
  const double right = std::min(static_cast<double>(width), face.left + (1 + kSide) * face.width);
  const double bottom = std::min(static_cast<double>(height), face.top + (1 + kDown) * face.height);
  return {left, top, right - left, bottom - top};
}

std::shared_ptr<FaceFinder> start_recognizer(const fs::path& identity_model, const std::string& face_model) {
  if (!is_file(identity_model) || identity_model.extension() != ".onnx") {
    throw ConfigError("identity_model",
                      "is no face recognition network (got " + identity_model.string() + "; allowed: an .onnx file)");
  }
  try {
    return std::make_shared<FaceFinder>(face_models(face_model), identity_model);
  } catch (const DataError& error) {
    throw ConfigError("identity_model", error.problems().front().what, error.problems().front().hint);
  }
}

Image searched_image(const Image& image) {
  const std::int64_t shorter = std::min(image.width, image.height);
  const std::int64_t longer = std::max(image.width, image.height);
  if (shorter < kSmallestSearched) {
    const std::int64_t times = (kSmallestSearched + shorter - 1) / shorter;
    return model::resized(image, times * image.width, times * image.height, model::Filter::kBicubic);
  }
  const std::int64_t side = std::max(kLargestSearched, longer * kSmallestSearched / shorter);
  if (longer <= side) return image;
  return model::resized(image, image.width * side / longer, image.height * side / longer, model::Filter::kBilinear);
}

FaceFinder::FaceFinder(const std::vector<fs::path>& models, const fs::path& recognizer, FaceProgramOptions options)
    : program_(std::move(options), arguments_of(models, recognizer)) {}

FoundFaces FaceFinder::find(const Image& image) {
  const std::lock_guard lock(mutex_);
  const std::string_view pixels(reinterpret_cast<const char*>(image.rgb.data()), image.rgb.size());
  const Json answer = program_.ask({{"width", image.width}, {"height", image.height}}, pixels);
  try {
    FoundFaces found;
    for (const Json& face : answer.at("faces")) {
      found.faces.push_back({face.at("left"), face.at("top"), face.at("width"), face.at("height")});
    }
    if (answer.contains("embedding")) found.identity = answer["embedding"].get<std::vector<float>>();
    return found;
  } catch (const nlohmann::json::exception& error) {
    throw DataError("sdtune-faces", std::string("gave an answer that cannot be read: ") + error.what());
  }
}

}  // namespace sdtune::train
