#include "train/data/photo_folder.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "model/base/file_system.h"
#include "model/base/sha256.h"
#include "model/image/image_read.h"
#include "train/data/caption_file.h"

namespace sdtune::train {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;

// A file with one of these endings was meant to be a picture, so it is an error when it cannot be read.
constexpr std::array kPictureEndings = {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".heic", ".heif", ".avif",
                                        ".gif", ".bmp",  ".tif", ".tiff", ".jxl", ".jp2",  ".psd",  ".dng",  ".cr2",
                                        ".cr3", ".nef",  ".arw", ".raf",  ".orf", ".rw2",  ".ico"};

std::string lower_ending(const fs::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return ending;
}

bool is_meant_as_picture(const fs::path& path) {
  const std::string ending = lower_ending(path);
  return std::find(kPictureEndings.begin(), kPictureEndings.end(), ending) != kPictureEndings.end();
}

// Why a file is passed over, or nothing when it must be read.
std::optional<std::string> reason_to_leave_out(const fs::path& path) {
  const std::string name = path.filename().string();
  if (name.starts_with('.')) return "hidden";
  std::error_code error;
  if (fs::is_directory(path, error)) return "a folder: only files directly inside are read";
  if (name == "Thumbs.db" || name == "desktop.ini") return "made by the file manager";
  if (is_meant_as_picture(path)) return std::nullopt;
  const std::string ending = lower_ending(path);
  return ending.empty() ? "no picture's ending" : "not a picture (" + ending + ")";
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

Reading read_photo(const fs::path& path) {
  Reading reading;
  reading.photo.path = path;
  try {
    const std::string bytes = read_file(path, kMaxFileBytes);
    const model::ImageInfo info = model::verify_image(bytes, path.string());
    reading.photo.width = info.seen_width();
    reading.photo.height = info.seen_height();
    reading.photo.bytes = bytes.size();
    reading.photo.sha256 = sha256_hex(bytes);
  } catch (const Error& error) {
    reading.bad = error.problems();
  }
  return reading;
}

// Decoding is what takes long, so the files are shared out to all cores.
std::vector<Reading> read_photos(const std::vector<fs::path>& paths) {
  std::vector<Reading> readings(paths.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&]() {
    for (std::size_t i = next++; i < paths.size(); i = next++) readings[i] = read_photo(paths[i]);
  };
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < std::min(cores, paths.size()); ++i) others.emplace_back(work);
  work();
  others.clear();  // joins
  return readings;
}

void caption_photo(PhotoFolder& result, Reading reading, const std::string& prompt, bool use_captions) {
  reading.photo.caption = prompt;
  const fs::path caption_path = fs::path(reading.photo.path).replace_extension(".txt");
  std::error_code error;
  if (use_captions && fs::exists(caption_path, error)) {
    try {
      reading.photo.caption = read_caption(caption_path);
    } catch (const Error& caught) {
      reading.bad.insert(reading.bad.end(), caught.problems().begin(), caught.problems().end());
    }
  }
  if (reading.bad.empty()) {
    result.photos.push_back(std::move(reading.photo));
  } else {
    result.bad.insert(result.bad.end(), reading.bad.begin(), reading.bad.end());
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

}  // namespace

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

PhotoFolder scan_photos(const fs::path& folder, const std::string& prompt, bool use_captions) {
  PhotoFolder result;
  std::vector<fs::path> paths;
  std::vector<fs::path> texts;
  std::set<std::string> stems;
  for (const fs::path& path : sorted_entries(folder)) {
    const std::optional<std::string> reason = reason_to_leave_out(path);
    if (!reason) {
      paths.push_back(path);
      stems.insert(path.stem().string());
    } else if (lower_ending(path) == ".txt") {
      texts.push_back(path);
    } else {
      result.left_out.push_back({path.string(), *reason, ""});
    }
  }
  for (const fs::path& text : texts) {
    if (!use_captions) {
      result.left_out.push_back({text.string(), "captions are switched off", "use_captions: true reads them"});
    } else if (!stems.contains(text.stem().string())) {
      result.warnings.push_back({text.string(), "a caption without a photo of the same name", ""});
    }
  }
  if (paths.empty()) {
    throw DataError(folder.string(),
                    "no photo in this folder (" + std::to_string(result.left_out.size()) + " other files)",
                    "put 3 to 20 photos of the subject into it, as JPEG, PNG or WebP");
  }
  for (Reading& reading : read_photos(paths)) caption_photo(result, std::move(reading), prompt, use_captions);
  warn_of_duplicates(result);
  return result;
}

}  // namespace sdtune::train
