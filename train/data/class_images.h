// The class pictures of prior preservation: which are there, which must be drawn, and by which rank. The drawing itself
// is the caller's (train/run), so this knows files and seeds only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "model/base/file_system.h"
#include "model/base/image.h"
#include "model/base/json.h"

namespace sdtune::train {

// What makes class pictures what they are. Pictures drawn with other settings are never used.
struct ClassImageSettings {
  std::string prompt;
  std::uint64_t seed = 0;       // picture i is drawn with seed + i
  std::string base_hash;        // of the base model's files
  std::int64_t resolution = 0;  // px
  Json sampler;                 // scheduler, steps, guidance scale: whatever changes the picture
};

struct ClassImagePlan {
  std::vector<std::filesystem::path> files;  // picture i, there or not yet; as many as asked for
  std::vector<std::int64_t> missing;         // the indices to draw, ascending
  std::int64_t own = 0;                      // pictures that the user put there: files[0, own)
};

// Pictures that the user put into the folder come first; the rest are class-<index>-<settings key>.png. One of those
// counts when it decodes and, where manifest.json lists it, has the hash given there. A folder that is not there is
// empty. Throws DataError listing every picture of the user's that cannot be read.
ClassImagePlan plan_class_images(const std::filesystem::path& folder, std::int64_t count,
                                 const ClassImageSettings& settings);

// Draws a picture for each seed, all of the same prompt.
using DrawPictures = std::function<std::vector<Image>(const std::vector<std::uint64_t>& seeds)>;

struct RankShare {
  std::int64_t rank = 0;
  std::int64_t ranks = 1;
  std::int64_t batch = 1;  // sample_batch_size
};

// Draws this rank's share of the missing pictures (index % ranks == rank), and writes each whole or not at all.
// `progress` gets (done, total) of the share.
void draw_class_images(FileSystem& files, const ClassImagePlan& plan, const ClassImageSettings& settings,
                       const RankShare& share, const DrawPictures& draw,
                       const std::function<void(std::int64_t, std::int64_t)>& progress = {});

// Rank 0, once all ranks have drawn: checks that every picture is there and writes manifest.json (settings; file, seed
// and hash of each). Throws DataError naming pictures that are missing.
void write_class_manifest(FileSystem& files, const std::filesystem::path& folder, const ClassImagePlan& plan,
                          const ClassImageSettings& settings);

}  // namespace sdtune::train
