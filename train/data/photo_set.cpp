#include "train/data/photo_set.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <utility>

#include "train/data/trigger.h"

namespace sdtune::train {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostFolderRepeats = 1000;  // a larger number is a year: "2024_holidays"

// "100_PANA", "101_0714": cameras name folders by eight characters, 100 to 999 and five of capitals, digits and _
// (JEITA CP-3461, Design rule for Camera File system).
bool is_camera_folder(const std::string& name) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return name.size() == 8 && name[0] != '0' && std::all_of(name.begin(), name.begin() + 3, is_digit) &&
         std::all_of(name.begin() + 3, name.end(),
                     [&](char c) { return is_digit(c) || (c >= 'A' && c <= 'Z') || c == '_'; });
}

struct KohyaFolder {
  fs::path path;
  FolderName name;
};

std::vector<KohyaFolder> kohya_folders(const fs::path& folder) {
  std::vector<KohyaFolder> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::optional<FolderName> name = kohya_folder(at->path().filename().string());
    if (name && at->is_directory(error)) found.push_back({at->path(), *name});
  }
  std::sort(found.begin(), found.end(), [](const KohyaFolder& left, const KohyaFolder& right) {
    return natural_less(left.path.filename().string(), right.path.filename().string());
  });
  return found;
}

template <typename Item>
void append(std::vector<Item>& list, std::vector<Item>& more) {
  list.insert(list.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// What both folders hold, one after the other.
void add_folder(PhotoFolder& all, PhotoFolder more) {
  append(all.photos, more.photos);
  append(all.bad, more.bad);
  append(all.left_out, more.left_out);
  append(all.warnings, more.warnings);
}

PhotoFolder scan_subject(const ConceptOptions& subject, bool use_captions, const PhotoVisitor& visitor) {
  const fs::path folder = subject.images;
  PhotoFolder result = scan_photos_if_any(folder, subject.instance_prompt, use_captions, visitor);
  for (const KohyaFolder& part : kohya_folders(folder)) {
    std::erase_if(result.left_out, [&](const Problem& entry) { return entry.where == part.path.string(); });
    PhotoFolder more = scan_photos_if_any(part.path, part.name.prompt, use_captions, visitor);
    for (Photo& photo : more.photos) {
      photo.repeats = part.name.repeats;
      photo.name.insert(0, part.path.filename().string() + "/");
    }
    add_folder(result, std::move(more));
  }
  if (result.photos.empty() && result.bad.empty()) throw no_photo(folder, result.left_out.size());
  return result;
}

// Of different folders; scan_photos_if_any warns of those in one.
void warn_of_shared_photos(PhotoFolder& all) {
  std::map<std::string, fs::path> first_with;
  for (const Photo& photo : all.photos) {
    const auto [at, is_new] = first_with.emplace(photo.sha256, photo.path);
    if (is_new || at->second.parent_path() == photo.path.parent_path()) continue;
    all.warnings.push_back(
        {photo.path.string(), "the same file as " + at->second.string(), "remove one, or it counts twice"});
  }
}

void put_trigger(const std::string& trigger_word, const std::string& own_trigger, Photo& photo) {
  photo.caption = with_trigger(photo.caption, trigger_word.empty() ? own_trigger : trigger_word);
  if (photo.has_caption) photo.caption = led_by_trigger(photo.caption, trigger_word);
}

}  // namespace

std::optional<FolderName> kohya_folder(const std::string& name) {
  FolderName result;
  const char* const end = name.data() + name.size();
  const auto [stop, status] = std::from_chars(name.data(), end, result.repeats);
  const bool is_count = status == std::errc() && result.repeats >= 1 && result.repeats <= kMostFolderRepeats;
  if (!is_count || is_camera_folder(name) || stop == end || *stop != '_' || stop + 1 == end) return {};
  result.prompt.assign(stop + 1, end);
  return result;
}

PhotoFolder scan_photos(const std::vector<ConceptOptions>& concepts, const DataOptions& options,
                        const PhotoVisitor& visitor) {
  PhotoFolder all;
  for (std::size_t i = 0; i < concepts.size(); ++i) {
    const ConceptOptions& subject = concepts[i];
    PhotoFolder found = scan_subject(subject, options.use_captions, visitor);
    const std::string own_trigger = trigger_of(subject.instance_prompt, subject.class_prompt);
    for (Photo& photo : found.photos) {
      photo.subject = i;
      photo.repeats *= subject.repeats;
      put_trigger(options.trigger_word, own_trigger, photo);
      if (concepts.size() > 1) photo.name.insert(0, std::to_string(i + 1) + ": ");
    }
    add_folder(all, std::move(found));
  }
  warn_of_shared_photos(all);
  return all;
}

PhotoFolder scan_held_out(const DataOptions& options, const fs::path& folder, const PhotoVisitor& visitor) {
  const std::vector<ConceptOptions> concepts = concepts_of(options);
  ConceptOptions subject = concepts.front();
  subject.images = folder.string();
  PhotoFolder found = scan_subject(subject, options.use_captions, visitor);
  const std::string own_trigger =
      concepts.size() > 1 ? std::string(kTriggerPlace) : trigger_of(subject.instance_prompt, subject.class_prompt);
  for (Photo& photo : found.photos) {
    photo.repeats = 1;
    put_trigger(options.trigger_word, own_trigger, photo);
  }
  return found;
}

bool is_said_of(const std::vector<Photo>& photos, std::size_t subject, std::string_view words) {
  if (words.empty()) return true;
  return std::any_of(photos.begin(), photos.end(), [&](const Photo& photo) {
    return photo.subject == subject && says_trigger(photo.caption, words);
  });
}

void drop_unused_faces(std::vector<Photo>& photos, const DataOptions& options) {
  if (options.crop() == "face") return;
  for (Photo& photo : photos) photo.face.reset();
}

}  // namespace sdtune::train
