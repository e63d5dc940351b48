// What a training of the tiny model needs on disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "model/image/png_write.h"
#include "model/pipeline/bundle.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tiny_bundle.h"

namespace sdtune::test {

// scratch/base, and five plain photos of 16 x 16 px in scratch/photos.
inline void write_tiny_training(const ScratchFolder& scratch) {
  model::save_bundle(real_file_system(), make_tiny_bundle(scratch, false), scratch.path() / "base", torch::kFloat32);
  std::filesystem::create_directories(scratch.path() / "photos");
  for (int photo = 0; photo < 5; ++photo) {
    Image image{16, 16, std::vector<std::uint8_t>(16 * 16 * 3, static_cast<std::uint8_t>(40 * photo))};
    model::write_png(real_file_system(), scratch.path() / "photos" / (std::to_string(photo) + ".png"), image, {});
  }
}

}  // namespace sdtune::test
