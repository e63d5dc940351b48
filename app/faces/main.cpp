// sdtune-faces MODEL...: finds faces in the pictures that come in on standard input. Of several models the first that
// finds a face decides.
//
// A picture is a line {"width": W, "height": H} and then W * H * 3 bytes of RGB. The answer is a line
// {"faces": [{"left", "top", "width", "height", "score"}, ...]} (px, the largest first), and the first line of all is
// {"ready": true} or {"error": "..."}. Ends with its input.
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/faces/detector.h"

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

using Detectors = std::vector<std::unique_ptr<sdtune::faces::Detector>>;

std::vector<sdtune::faces::Face> find(const Detectors& detectors, const cv::Mat& rgb) {
  for (const auto& detector : detectors) {
    std::vector<sdtune::faces::Face> faces = detector->find(rgb);
    if (!faces.empty()) return faces;
  }
  return {};
}

int serve(const Detectors& detectors) {
  std::string line;
  std::vector<std::uint8_t> pixels;
  while (std::getline(std::cin, line)) {
    const Json header = Json::parse(line);
    const std::int64_t width = header.at("width"), height = header.at("height");
    if (width < 1 || height < 1 || width > kMostPixels / height) return fail("a picture of impossible size");
    pixels.resize(static_cast<std::size_t>(width * height * 3));
    std::cin.read(reinterpret_cast<char*>(pixels.data()), static_cast<std::streamsize>(pixels.size()));
    if (!std::cin) return fail("the input ends inside a picture");
    const cv::Mat rgb(static_cast<int>(height), static_cast<int>(width), CV_8UC3, pixels.data());
    std::cout << describe(find(detectors, rgb)).dump() << std::endl;
  }
  return 0;
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count < 2) return fail("usage: sdtune-faces MODEL...");
  try {
    cv::setNumThreads(1);  // sdtune decodes on the other cores meanwhile
    Detectors detectors;
    for (int i = 1; i < argument_count; ++i) detectors.push_back(sdtune::faces::make_detector(arguments[i]));
    std::cout << Json{{"ready", true}}.dump() << std::endl;
    return serve(detectors);
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}
