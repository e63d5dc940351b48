// The photos of a run: found, sorted, hashed, decoded once to prove that they can be, and captioned.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/error.h"
#include "model/base/image.h"
#include "model/image/crop.h"
#include "model/image/image_quality.h"

namespace sdtune::train {

// What the analysis of a photo found (photo_analysis.h).
struct PhotoAnalysis {
  model::ImageQuality signs;
  bool searched = false;               // for faces
  std::vector<model::ImageBox> faces;  // px of the photo, the largest first
  std::vector<float> identity = {};    // who it shows, of length 1; empty where it is not known
};

struct Photo {
  std::filesystem::path path;
  std::string name;          // the file's, below the folder of its subject
  std::int64_t width = 0;    // px, as seen: after the EXIF turn
  std::int64_t height = 0;   // px
  int orientation = 1;       // EXIF
  bool is_rendered = false;  // by sdtune itself: detectors of camera faces do not fit it
  std::uint64_t bytes = 0;   // of the file
  std::string sha256;        // of the file
  std::string caption;       // from the .txt of the same name, else of metadata.jsonl, else the folder's prompt
  bool has_caption = false;  // its own, not the prompt
  std::string auto_caption;  // its prompt and what else it shows (auto_caption_rate); empty: none
  std::int64_t repeats = 1;  // in an epoch
  std::size_t subject = 0;   // index into the run's concepts
  std::optional<model::ImageBox> face;    // px: as metadata.jsonl says, else the largest that was found
  std::optional<PhotoAnalysis> analysis;  // unset where it was not asked for
};

struct PhotoFolder {
  std::vector<Photo> photos;      // in natural order of their names: img2 before img10
  std::vector<Problem> bad;       // images that cannot be read and captions that are wrong, all of them
  std::vector<Problem> left_out;  // files that are no images and do not hurt: .DS_Store, .json, folders, ...
  std::vector<Problem> warnings;  // photos with the same content, captions without a photo or of other names
};

// What is wanted of each readable photo besides its facts. All are called from several threads and must not throw.
struct PhotoVisitor {
  std::function<void(Photo& photo, const Image& preview)> examine = {};   // may fill analysis and face
  std::function<void(const Photo& photo, const Image& image)> keep = {};  // afterwards: the whole photo, as seen
  std::function<bool(const Photo& photo)> is_kept = {};                   // whether `keep` wants it; unset: each
};
inline constexpr std::int64_t kPreviewSide = 512;  // px, the longer side

// Reads every file of `folder` (not of its subfolders) and its metadata.jsonl. `prompt` is the caption of a photo that
// has none of its own, and of all when use_captions is false. Nothing is thrown for single files: see PhotoFolder.
// Throws DataError when there is no such folder or it holds no image at all.
PhotoFolder scan_photos(const std::filesystem::path& folder, const std::string& prompt, bool use_captions,
                        const PhotoVisitor& visitor = {});

// What scan_photos throws of a folder without images.
DataError no_photo(const std::filesystem::path& folder, std::size_t other_files);

// The same as scan_photos, but a folder without images gives none.
PhotoFolder scan_photos_if_any(const std::filesystem::path& folder, const std::string& prompt, bool use_captions,
                               const PhotoVisitor& visitor = {});

// Names in the order people expect: runs of digits compare as numbers.
bool natural_less(std::string_view left, std::string_view right);

}  // namespace sdtune::train
