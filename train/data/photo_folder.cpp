#include "train/data/photo_folder.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "model/base/error.h"
#include "model/files/file_system.h"
#include "model/files/sha256.h"
#include "model/image/image_read.h"
#include "model/image/png_text.h"
#include "train/data/caption_file.h"
#include "train/data/decoding_room.h"
#include "train/data/mask_name.h"
#include "train/data/metadata_file.h"

namespace sdtune::train {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;
// Its shorter side becomes the resolution: of a photo of 1 x 1000000 px the longer one would be one of 5e8.
constexpr std::int64_t kMostTimesAsLong = 1000;
constexpr std::int64_t kBytesAPixel = 10;  // of RGBA, of RGB and of RGB that is turned, at the same time

// A file with one of these endings was meant to be an image, so it is an error when it cannot be read.
constexpr std::array kImageEndings = {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".heic", ".heif", ".avif",
                                      ".gif", ".bmp",  ".tif", ".tiff", ".jxl", ".jp2",  ".psd",  ".dng",  ".cr2",
                                      ".cr3", ".nef",  ".arw", ".raf",  ".orf", ".rw2",  ".ico"};

std::string lower_ending(const fs::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return ending;
}

bool is_meant_as_image(const fs::path& path) {
  const std::string ending = lower_ending(path);
  return std::find(kImageEndings.begin(), kImageEndings.end(), ending) != kImageEndings.end();
}

// Why a file is passed over, or nothing when it must be read.
std::optional<std::string> reason_to_leave_out(const fs::path& path) {
  const std::string name = path.filename().string();
  if (name.starts_with('.')) return "hidden";
  std::error_code error;
  if (fs::is_directory(path, error)) return "a folder: only files directly inside are read";
  if (name == "Thumbs.db" || name == "desktop.ini") return "made by the file manager";
  if (is_mask(path)) return "a mask: masked_loss reads it";
  if (is_meant_as_image(path)) return std::nullopt;
  const std::string ending = lower_ending(path);
  return ending.empty() ? "no image's ending" : "not an image (" + ending + ")";
}

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder, error)) throw DataError(folder.string(), "no such folder", "name the folder of your photos");
  if (!fs::is_directory(folder, error)) throw DataError(folder.string(), "not a folder");
  std::vector<fs::path> entries;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    entries.push_back(at->path());
  }
  if (error) throw DataError(folder.string(), "cannot be listed: " + error.message());
  std::sort(entries.begin(), entries.end(), [](const fs::path& left, const fs::path& right) {
    return natural_less(left.filename().string(), right.filename().string());
  });
  return entries;
}

// What reading one file gave: a photo, or its fault.
struct Reading {
  Photo photo;
  std::vector<Problem> bad;
};

// Decodes as little as the visitor asks for; all of the file's data is read in any case.
void visit(std::string_view bytes, Photo& photo, const PhotoVisitor& visitor, DecodingRoom& room) {
  const std::string where = photo.path.string();
  model::ImageReading reading(bytes, where);
  photo.width = reading.info().seen_width();
  photo.height = reading.info().seen_height();
  photo.orientation = reading.info().orientation;
  const auto [shorter, longer] = std::minmax(photo.width, photo.height);
  if (longer > kMostTimesAsLong * shorter) {
    throw DataError(where,
                    "is too narrow for its length (got " + std::to_string(photo.width) + "x" +
                        std::to_string(photo.height) + " px; allowed: up to " + std::to_string(kMostTimesAsLong) +
                        " times as long as wide)",
                    "cut a part out of it");
  }
  const DecodingRoom::Share share(room, kBytesAPixel * photo.width * photo.height);
  const bool keeps = visitor.keep && (!visitor.is_kept || visitor.is_kept(photo));
  if (!visitor.examine && !keeps) model::verify_image(bytes, where);
  if (visitor.examine) visitor.examine(photo, reading.preview(kPreviewSide));
  if (keeps) visitor.keep(photo, reading.whole());
}

Reading read_photo(const fs::path& path, const std::map<std::string, PhotoNote>& notes, const PhotoVisitor& visitor,
                   DecodingRoom& room) {
  Reading reading;
  reading.photo.path = path;
  reading.photo.name = path.filename().string();
  try {
    const std::string bytes = read_file(path, kMaxFileBytes);
    reading.photo.bytes = bytes.size();
    reading.photo.sha256 = sha256_hex(bytes);
    const auto note = notes.find(reading.photo.name);
    if (note != notes.end()) reading.photo.face = note->second.face;
    reading.photo.is_rendered = model::is_made_by_sdtune(bytes);
    visit(bytes, reading.photo, visitor, room);
  } catch (const Error& error) {
    reading.bad = error.problems();
  }
  return reading;
}

// Decoding is what takes long, so the files are shared out to all cores.
std::vector<Reading> read_photos(const std::vector<fs::path>& paths, const std::map<std::string, PhotoNote>& notes,
                                 const PhotoVisitor& visitor) {
  std::vector<Reading> readings(paths.size());
  std::atomic<std::size_t> next{0};
  DecodingRoom room(DecodingRoom::of_machine());
  const auto work = [&]() {
    for (std::size_t i = next++; i < paths.size(); i = next++) readings[i] = read_photo(paths[i], notes, visitor, room);
  };
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::future<void>> threads(std::min(cores, paths.size()));
  const std::launch policy = std::launch::async | std::launch::deferred;  // later where no thread can be made
  for (std::future<void>& thread : threads) thread = std::async(policy, work);
  for (std::future<void>& thread : threads) thread.wait();  // they use what is gone after an exception
  for (std::future<void>& thread : threads) thread.get();   // memory that ran out, not the fault of a photo
  return readings;
}

// The .txt file beside the photo wins over metadata.jsonl, and that over the prompt.
void caption_photo(Reading& reading, const std::string& prompt, const fs::path& caption_file, const PhotoNote& note) {
  Photo& photo = reading.photo;
  photo.caption = prompt;
  photo.has_caption = !caption_file.empty() || note.text.has_value();
  if (note.text) photo.caption = *note.text;
  if (caption_file.empty()) return;
  try {
    photo.caption = read_caption(caption_file);
  } catch (const Error& caught) {
    reading.bad.insert(reading.bad.end(), caught.problems().begin(), caught.problems().end());
  }
}

void warn_of_duplicates(PhotoFolder& result) {
  std::map<std::string, fs::path> first_with;
  for (const Photo& photo : result.photos) {
    const auto [at, is_new] = first_with.emplace(photo.sha256, photo.path);
    if (!is_new) {
      result.warnings.push_back({photo.path.string(), "the same file as " + at->second.filename().string(),
                                 "remove one, or it counts twice"});
    }
  }
}

// The entries of a folder, told apart.
struct Listing {
  std::vector<fs::path> images;
  std::vector<fs::path> texts;
  std::vector<Problem> left_out;
};

Listing list_folder(const fs::path& folder) {
  Listing listing;
  for (const fs::path& path : sorted_entries(folder)) {
    const std::optional<std::string> reason = reason_to_leave_out(path);
    if (!reason) {
      listing.images.push_back(path);
    } else if (lower_ending(path) == ".txt") {
      listing.texts.push_back(path);
    } else if (path.filename() != kMetadataFile) {
      listing.left_out.push_back({path.string(), *reason, ""});
    }
  }
  return listing;
}

// By the photo's name without its ending. "a.TXT" is one, too, where there is no "a.txt".
std::map<std::string, fs::path> captions_of(const Listing& listing) {
  std::map<std::string, fs::path> captions;
  for (const fs::path& text : listing.texts) {
    if (const auto [at, is_new] = captions.emplace(text.stem().string(), text); !is_new && text.extension() == ".txt") {
      at->second = text;
    }
  }
  return captions;
}

void check_texts(const Listing& listing, bool use_captions, PhotoFolder& result) {
  std::set<std::string> stems;
  for (const fs::path& image : listing.images) stems.insert(image.stem().string());
  for (const fs::path& text : listing.texts) {
    if (!use_captions) {
      result.left_out.push_back({text.string(), "captions are switched off", "use_captions: true reads them"});
    } else if (!stems.contains(text.stem().string())) {
      result.warnings.push_back({text.string(), "a caption without a photo of the same name", ""});
    }
  }
}

// kohya's trainer reads .caption files unless it is told otherwise. Here such photos are trained with the prompt.
void warn_of_other_captions(PhotoFolder& result) {
  std::set<std::string> without;
  for (const Photo& photo : result.photos) {
    if (!photo.has_caption) without.insert(photo.path.stem().string());
  }
  std::vector<std::string> unread;
  for (const Problem& entry : result.left_out) {
    const fs::path path = entry.where;
    if (lower_ending(path) == ".caption" && without.contains(path.stem().string())) unread.push_back(entry.where);
  }
  if (unread.empty()) return;
  std::string what = "is not read as its photo's caption";
  const std::size_t others = unread.size() - 1;
  if (others == 1) what.append(", nor is 1 other");
  if (others > 1) what.append(", nor are ").append(std::to_string(others)).append(" others");
  result.warnings.push_back({unread.front(), std::move(what), "captions end in .txt: rename it"});
}

// Notes of files that are not there: a typing error, or a photo that was lost.
void check_notes(const std::map<std::string, PhotoNote>& notes, const fs::path& folder, const Listing& listing,
                 PhotoFolder& result) {
  std::set<std::string> names;
  for (const fs::path& image : listing.images) names.insert(image.filename().string());
  for (const auto& [name, note] : notes) {
    if (names.contains(name)) continue;
    result.warnings.push_back({(folder / kMetadataFile).string(), "names a photo that is not there (got " + name + ")",
                               "file_name is a file directly in this folder"});
  }
}

}  // namespace

DataError no_photo(const fs::path& folder, std::size_t other_files) {
  return DataError(folder.string(), "no photo in this folder (" + std::to_string(other_files) + " other files)",
                   "put 3 to 20 photos of the subject into it, as JPEG, PNG, WebP or HEIC");
}

bool natural_less(std::string_view left, std::string_view right) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t i = 0, j = 0;
  while (i < left.size() && j < right.size()) {
    if (!is_digit(left[i]) || !is_digit(right[j])) {
      if (left[i] != right[j]) return static_cast<unsigned char>(left[i]) < static_cast<unsigned char>(right[j]);
      ++i;
      ++j;
      continue;
    }
    const auto number = [&](std::string_view text, std::size_t& at) {
      while (at < text.size() && text[at] == '0') ++at;
      const std::size_t begin = at;
      while (at < text.size() && is_digit(text[at])) ++at;
      return text.substr(begin, at - begin);
    };
    const std::string_view first = number(left, i);
    const std::string_view second = number(right, j);
    if (first.size() != second.size()) return first.size() < second.size();
    if (first != second) return first < second;
  }
  if ((i < left.size()) != (j < right.size())) return j < right.size();
  return left < right;  // differ in leading zeros only
}

PhotoFolder scan_photos_if_any(const fs::path& folder, const std::string& prompt, bool use_captions,
                               const PhotoVisitor& visitor) {
  Listing listing = list_folder(folder);
  PhotoFolder result;
  result.left_out = std::move(listing.left_out);
  check_texts(listing, use_captions, result);
  const std::map<std::string, PhotoNote> notes = read_metadata(folder, result.bad);
  check_notes(notes, folder, listing, result);
  const std::map<std::string, fs::path> captions =
      use_captions ? captions_of(listing) : std::map<std::string, fs::path>();
  for (Reading& reading : read_photos(listing.images, notes, visitor)) {
    const auto note = notes.find(reading.photo.name);
    const auto caption = captions.find(reading.photo.path.stem().string());
    caption_photo(reading, prompt, caption == captions.end() ? fs::path() : caption->second,
                  note == notes.end() || !use_captions ? PhotoNote() : note->second);
    if (reading.bad.empty()) {
      result.photos.push_back(std::move(reading.photo));
    } else {
      result.bad.insert(result.bad.end(), reading.bad.begin(), reading.bad.end());
    }
  }
  warn_of_duplicates(result);
  if (use_captions) warn_of_other_captions(result);
  return result;
}

PhotoFolder scan_photos(const fs::path& folder, const std::string& prompt, bool use_captions,
                        const PhotoVisitor& visitor) {
  PhotoFolder result = scan_photos_if_any(folder, prompt, use_captions, visitor);
  if (result.photos.empty() && result.bad.empty()) throw no_photo(folder, result.left_out.size());
  return result;
}

}  // namespace sdtune::train
