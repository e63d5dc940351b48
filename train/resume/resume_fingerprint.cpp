#include "train/resume/resume_fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <system_error>

#include "model/base/error.h"
#include "model/base/json.h"
#include "model/files/sha256.h"
#include "train/data/photo_masks.h"

namespace sdtune::train {

namespace fs = std::filesystem;

namespace {

// Options that checkpoints of older versions do not hold although they had an effect: a resumed run is believed. Those
// versions summed split batches and ranks in half precision, so a run of theirs resumes either way.
constexpr const char* kOnceUnrecorded[] = {"allow_tf32", "half_precision_gradient_sums"};

// Options that came later, and had no effect at their defaults.
constexpr const char* kAddedLater[] = {"vae_tiling", "comm_hook", "auto_caption_rate", "trainable_layers", "dco_beta"};

bool decides_numbers(const fs::path& file) {
  const std::string extension = file.extension().string();
  return extension == ".safetensors" || extension == ".json" || extension == ".txt";
}

bool is_utf8(const std::string& text) {
  try {
    static_cast<void>(Json(text).dump());
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

// Names of files need not be UTF-8, which JSON must be: the others have their bytes beyond ASCII written out.
std::string as_utf8(const std::string& name) {
  if (is_utf8(name)) return name;
  std::string text;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    text += byte < 0x80 ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  return text;
}

// Whole pixels: where the crop lies follows from it.
std::string box_text(const model::ImageBox& box) {
  std::string text;
  for (const double value : {box.left, box.top, box.width, box.height})
    text += std::to_string(std::lround(value)) + " ";
  return text;
}

}  // namespace

std::vector<fs::path> files_of_base(const fs::path& base) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::recursive_directory_iterator at(base, fs::directory_options::follow_directory_symlink, error);
  for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
    std::error_code status;
    if (at->is_regular_file(status) && decides_numbers(at->path())) files.push_back(at->path());
    if (status == std::errc::too_many_symbolic_link_levels) {
      error = status;
      break;  // a link that leads nowhere is no such error: nothing of it is read
    }
  }
  if (error) throw WeightError(base.string(), "cannot be listed: " + error.message(), "does a link in it lead back?");
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::pair<std::string, std::string>> hashes_of_base(const fs::path& base) {
  std::vector<std::pair<std::string, std::string>> hashes;
  for (const fs::path& file : files_of_base(base)) {
    hashes.emplace_back(file.lexically_relative(base).generic_string(), sha256_of_file(file));
  }
  return hashes;
}

std::string hash_of_base(const std::vector<std::pair<std::string, std::string>>& hashes) {
  std::string listing;
  for (const auto& [file, hash] : hashes) listing.append(file).append(" ").append(hash).append("\n");
  return sha256_hex(listing);
}

std::string hash_of_base(const fs::path& base) {
  return hash_of_base(hashes_of_base(base));
}

std::map<std::string, std::string> fingerprint_settings(const TrainConfig& config) {
  TrainConfig copy = config;
  const FieldList fields = copy.fields();
  std::map<std::string, std::string> settings;
  for (const Field& field : fields) {
    if (field.info.resume == Resume::kMustMatch) settings[field.info.name] = field_text(field);
  }
  // The options of Resume::kByRule.
  settings["optimizer"] = config.optim.chosen_optimizer();
  // A constant rate does not depend on where the run ends; every other curve does, and so does a share of the steps.
  const bool text_stops = config.run.train_text_encoder && config.optim.train_text_encoder_frac < 1;
  if (text_stops || !config.optim.lr_scheduler.starts_with("constant")) {
    settings["max_train_steps"] = field_text(*find_field(fields, "max_train_steps"));
  }
  return settings;
}

ResumeFingerprint completed_fingerprint(ResumeFingerprint saved, const ResumeFingerprint& now) {
  for (const char* name : kOnceUnrecorded) {
    const auto current = now.settings.find(name);
    if (current != now.settings.end()) saved.settings.insert(*current);
  }
  saved.settings.merge(fingerprint_settings(TrainConfig()));
  return saved;
}

ResumeFingerprint always_recorded(ResumeFingerprint fingerprint) {
  for (const char* name : kOnceUnrecorded) fingerprint.settings.erase(name);
  const std::map<std::string, std::string> defaults = fingerprint_settings(TrainConfig());
  for (const char* name : kAddedLater) {
    const auto found = fingerprint.settings.find(name);
    if (found != fingerprint.settings.end() && found->second == defaults.at(name)) fingerprint.settings.erase(found);
  }
  return fingerprint;
}

std::map<std::string, std::string> fingerprint_images(const std::vector<Photo>& photos,
                                                      const std::vector<ClassImage>& class_images, bool masked) {
  std::map<std::string, std::string> images;
  for (const Photo& photo : photos) {
    std::string content = photo.sha256 + "\n" + photo.caption;
    if (!photo.auto_caption.empty()) content.append("\n").append(photo.auto_caption);
    if (photo.face) content.append("\nface ").append(box_text(*photo.face));
    if (photo.repeats > 1) content.append("\n").append(std::to_string(photo.repeats));
    images[as_utf8(photo.name)] = sha256_hex(content);
  }
  for (const ClassImage& image : class_images) {
    const auto [name, full_name] = class_image_names(image.path, image.prompt);
    images[images.contains(name) ? full_name : name] = sha256_hex(sha256_of_file(image.path) + "\n" + image.prompt);
  }
  if (masked) {
    for (const auto& [photo, hash] : mask_file_hashes(photos)) images["mask of " + as_utf8(photo)] = hash;
  }
  return images;
}

std::array<std::string, 2> class_image_names(const fs::path& file, const std::string& prompt) {
  const std::string name = "class: " + as_utf8(file.filename().string());
  return {name, name + " of " + prompt};
}

}  // namespace sdtune::train
