// sdtune-faces [--recognizer NETWORK] MODEL...: finds faces in the images that come in on standard input. Of several
// models the first that finds a face decides.
//
// An image is a line {"width": W, "height": H} and then W * H * 3 bytes of RGB. The answer is a line
// {"faces": [{"left", "top", "width", "height", "score"}, ...]} (px, the largest first), with a recognizer also
// "embedding", the largest face as a vector of length 1, where there is a face. An "id" of the request is repeated in
// its answer. The first line of all is {"ready": true} or {"error": "..."}. Ends with its input.
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/faces/detector.h"
#include "app/faces/recognizer.h"

namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMostPixels = 1 << 24;  // sdtune sends previews

int fail(const std::string& reason) {
  std::cout << Json{{"error", reason}}.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
  return 2;
}

Json describe(const std::vector<sdtune::faces::Face>& faces) {
  Json list = Json::array();
  for (const sdtune::faces::Face& face : faces) {
    list.push_back({{"left", face.box.x},
                    {"top", face.box.y},
                    {"width", face.box.width},
                    {"height", face.box.height},
                    {"score", face.score}});
  }
  return {{"faces", std::move(list)}};
}

struct Models {
  std::vector<std::unique_ptr<sdtune::faces::Detector>> detectors;
  std::optional<sdtune::faces::Recognizer> recognizer;
};

Models load(const std::vector<std::string>& words) {
  Models models;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--recognizer" && i + 1 < words.size()) {
      models.recognizer.emplace(words[++i]);
    } else {
      models.detectors.push_back(sdtune::faces::make_detector(words[i]));
    }
  }
  return models;
}

std::vector<sdtune::faces::Face> find(const Models& models, const cv::Mat& rgb) {
  for (const auto& detector : models.detectors) {
    std::vector<sdtune::faces::Face> faces = detector->find(rgb);
    if (!faces.empty()) return faces;
  }
  return {};
}

Json answer(Models& models, const cv::Mat& rgb) {
  const std::vector<sdtune::faces::Face> faces = find(models, rgb);
  Json json = describe(faces);
  if (models.recognizer && !faces.empty()) json["embedding"] = models.recognizer->embed(rgb, faces.front());
  return json;
}

int serve(Models& models) {
  std::string line;
  std::vector<std::uint8_t> pixels;
  while (std::getline(std::cin, line)) {
    const Json header = Json::parse(line);
    const std::int64_t width = header.at("width"), height = header.at("height");
    if (width < 1 || height < 1 || width > kMostPixels / height) return fail("an image of impossible size");
    pixels.resize(static_cast<std::size_t>(width * height * 3));
    std::cin.read(reinterpret_cast<char*>(pixels.data()), static_cast<std::streamsize>(pixels.size()));
    if (!std::cin) return fail("the input ends inside an image");
    const cv::Mat rgb(static_cast<int>(height), static_cast<int>(width), CV_8UC3, pixels.data());
    Json json = answer(models, rgb);
    if (header.contains("id")) json["id"] = header["id"];
    std::cout << json.dump() << std::endl;
  }
  return 0;
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count < 2) return fail("usage: sdtune-faces [--recognizer NETWORK] MODEL...");
  try {
    cv::setNumThreads(1);  // sdtune decodes on the other cores meanwhile
    Models models = load({arguments + 1, arguments + argument_count});
    std::cout << Json{{"ready", true}}.dump() << std::endl;
    return serve(models);
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}
