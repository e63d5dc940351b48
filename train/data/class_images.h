// The class images of prior preservation: which are there, which must be generated, and by which rank. Generation
// itself is the caller's (train/prepare), so this knows files and seeds only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "model/base/image.h"
#include "model/base/json.h"
#include "model/files/file_system.h"

namespace sdtune::train {

// An image of prior preservation and the prompt that it goes with.
struct ClassImage {
  std::filesystem::path path;
  std::string prompt;
};

// What makes class images what they are. Images generated with other settings are never used.
struct ClassImageSettings {
  std::string prompt;
  std::uint64_t seed = 0;       // image i is generated with seed + i
  std::string base_hash;        // of the base model's files
  std::int64_t resolution = 0;  // px
  Json sampler;                 // scheduler, steps, guidance scale: whatever changes the image
};

struct ClassImagePlan {
  std::vector<std::filesystem::path> files;  // image i, there or not yet; as many as asked for
  std::vector<std::int64_t> missing;         // the indices to generate, ascending
  std::int64_t own = 0;                      // images that the user put there: files[0, own)
};

// The images that the user put into a folder of class images, in natural order; none of a folder that is not there.
// Throws DataError listing each that cannot be read.
std::vector<std::filesystem::path> own_class_images(const std::filesystem::path& folder);

// Whether there may be images in it that an earlier run generated, with whatever settings.
bool has_generated_class_images(const std::filesystem::path& folder);

// Images that the user put into the folder come first; the rest are class-<index>-<settings key>.png. One of those
// counts when it decodes and, where manifest.json lists it, has the hash given there. A folder that is not there is
// empty. Throws DataError listing every image of the user's that cannot be read.
ClassImagePlan plan_class_images(const std::filesystem::path& folder, std::int64_t count,
                                 const ClassImageSettings& settings);

// Generates an image for each seed, all of the same prompt.
using GenerateClassImages = std::function<std::vector<Image>(const std::vector<std::uint64_t>& seeds)>;

struct RankShare {
  std::int64_t rank = 0;
  std::int64_t ranks = 1;
  std::int64_t batch = 1;  // sample_batch_size
};

// Generates this rank's share of the missing images (index % ranks == rank), and writes each whole or not at all.
// `progress` gets (done, total) of the share.
void generate_class_images(FileSystem& files, const ClassImagePlan& plan, const ClassImageSettings& settings,
                           const RankShare& share, const GenerateClassImages& generate,
                           const std::function<void(std::int64_t, std::int64_t)>& progress = {});

// Rank 0, once all ranks are done: checks that every image is there and writes manifest.json (settings; file, seed
// and hash of each). Throws DataError naming images that are missing.
void write_class_manifest(FileSystem& files, const std::filesystem::path& folder, const ClassImagePlan& plan,
                          const ClassImageSettings& settings);

}  // namespace sdtune::train
