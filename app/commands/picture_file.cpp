#include "app/commands/picture_file.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "app/commands/picture_text.h"
#include "model/base/file_system.h"
#include "model/image/ai_mark.h"
#include "model/image/png_write.h"

namespace sdtune::app {
namespace {

// The letters and digits of a text as a file name of at most 60 bytes: "A photo of sks, person!" ->
// "a-photo-of-sks-person".
std::string file_name_part(const std::string& text) {
  constexpr std::size_t kLongest = 60;
  std::string name;
  for (const char c : text) {
    if (name.size() >= kLongest) break;
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      name += upper ? static_cast<char>(c - 'A' + 'a') : c;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name.empty() ? "picture" : name;
}

}  // namespace

std::filesystem::path free_path(const std::filesystem::path& wanted) {
  std::filesystem::path path = wanted;
  for (int attempt = 2; std::filesystem::exists(path); ++attempt) {
    path =
        wanted.parent_path() / (wanted.stem().string() + "-" + std::to_string(attempt) + wanted.extension().string());
  }
  return path;
}

Image to_image(const torch::Tensor& picture) {
  const torch::Tensor bytes = (picture.detach().to(torch::kCPU, torch::kFloat32) * 255)
                                  .round()
                                  .clamp(0, 255)
                                  .to(torch::kUInt8)
                                  .permute({1, 2, 0})  // [3, H, W] -> [H, W, 3]
                                  .contiguous();
  Image image{bytes.size(1), bytes.size(0), std::vector<std::uint8_t>(static_cast<std::size_t>(bytes.numel()))};
  std::memcpy(image.rgb.data(), bytes.const_data_ptr<std::uint8_t>(), image.rgb.size());
  return image;
}

std::string model_name(const std::filesystem::path& folder) {
  return (folder.filename() == "model" ? folder.parent_path() : folder).filename().string();
}

std::filesystem::path write_picture(const SampleOptions& options, const DrawingSources& sources,
                                    const Drawing& drawing) {
  FileSystem& files = real_file_system();
  files.create_directories(options.output);
  const std::string name = file_name_part(options.prompt) + "_" + std::to_string(options.seed) + ".png";
  const std::filesystem::path path = free_path(std::filesystem::path(options.output) / name);
  const Image picture = to_image(drawing.pixels);
  std::vector<model::PngText> texts = {
      {"parameters", parameters_text(options, sources, {picture.width, picture.height, drawing.scheduler_class})},
      {"Software", "sdtune " SDTUNE_VERSION},
      {std::string(kRecordKey), picture_record(options, sources, drawing.batch).dump()}};
  if (options.ai_mark) texts.push_back(model::ai_generated_mark());
  model::write_png(files, path, picture, texts);
  return path;
}

}  // namespace sdtune::app
