#include "model/generate/image_file.h"

#include <cstddef>
#include <string>
#include <vector>

#include "model/base/json.h"
#include "model/core/image_tensor.h"
#include "model/files/file_system.h"
#include "model/image/ai_mark.h"
#include "model/image/png_write.h"

namespace sdtune::model {
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
  return name.empty() ? "image" : name;
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

std::filesystem::path write_image(const std::filesystem::path& folder, const GenerateOptions& options,
                                  const ImageSources& sources, const GeneratedImage& generated) {
  FileSystem& files = real_file_system();
  files.create_directories(folder);
  const std::string name = file_name_part(options.prompt) + "_" + std::to_string(options.seed) + ".png";
  const std::filesystem::path path = free_path(folder / name);
  // Files that options name need not be called in UTF-8, and metadata must be: no image is lost to that.
  const std::string metadata =
      generation_metadata(options, sources, generated.batch).dump(-1, ' ', false, Json::error_handler_t::replace);
  std::vector<PngText> texts = {{"parameters", valid_text(a1111_parameters(options, sources, generated.sampling))},
                                {"Software", "sdtune " SDTUNE_VERSION},
                                {std::string(kMetadataKey), metadata}};
  if (options.ai_mark) texts.push_back(ai_generated_mark());
  write_png(files, path, tensor_to_image(generated.pixels), texts);
  return path;
}

}  // namespace sdtune::model
