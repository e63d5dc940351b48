// How a photo's mask is called.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace sdtune::train {

inline constexpr const char* kMaskEnding = ".mask.png";

inline bool is_mask(const std::filesystem::path& path) {
  return path.filename().string().ends_with(kMaskEnding);
}

// NAME.mask.png beside NAME.jpg, if there is one.
inline std::optional<std::filesystem::path> mask_of(const std::filesystem::path& photo) {
  const std::filesystem::path mask = photo.parent_path() / (photo.stem().string() + kMaskEnding);
  std::error_code error;
  return std::filesystem::exists(mask, error) ? std::optional(mask) : std::nullopt;
}

}  // namespace sdtune::train
