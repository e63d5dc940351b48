// How a photo's mask is called.
#pragma once

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

namespace sdtune::train {

// The second and third as cameras and some paint programs write endings.
inline constexpr std::array kMaskEndings = {".mask.png", ".mask.PNG", ".MASK.PNG"};

inline bool is_mask(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  return std::any_of(kMaskEndings.begin(), kMaskEndings.end(), [&](const char* end) { return name.ends_with(end); });
}

// NAME.mask.png beside NAME.jpg, if there is one.
inline std::optional<std::filesystem::path> mask_of(const std::filesystem::path& photo) {
  for (const char* ending : kMaskEndings) {
    const std::filesystem::path mask = photo.parent_path() / (photo.stem().string() + ending);
    std::error_code error;
    if (std::filesystem::exists(mask, error)) return mask;
  }
  return std::nullopt;
}

}  // namespace sdtune::train
