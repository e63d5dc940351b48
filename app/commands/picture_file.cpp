#include "app/commands/picture_file.h"

#include <cstring>
#include <sstream>

#include "model/base/file_system.h"
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

std::string parameters_text(const SampleOptions& options, const Drawing& drawing) {
  std::ostringstream text;
  text << options.prompt << '\n';
  if (options.negative_prompt && !options.negative_prompt->empty()) {
    text << "Negative prompt: " << *options.negative_prompt << '\n';
  }
  text << "Steps: " << options.steps << ", Sampler: " << options.sampler.value_or(drawing.scheduler_class)
       << ", CFG scale: " << options.guidance_scale << ", Seed: " << drawing.seed
       << ", Size: " << drawing.pixels.size(2) << 'x' << drawing.pixels.size(1)
       << ", Model: " << model_name(drawing.model) << ", Version: sdtune " SDTUNE_VERSION;
  return text.str();
}

std::filesystem::path write_picture(const SampleOptions& options, const Drawing& drawing) {
  FileSystem& files = real_file_system();
  files.create_directories(options.output);
  const std::string name = file_name_part(options.prompt) + "_" + std::to_string(drawing.seed) + ".png";
  const std::filesystem::path path = free_path(std::filesystem::path(options.output) / name);
  model::write_png(files, path, to_image(drawing.pixels),
                   {{"parameters", parameters_text(options, drawing)}, {"Software", "sdtune " SDTUNE_VERSION}});
  return path;
}

}  // namespace sdtune::app
