#include "train/data/epoch_contents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

namespace sdtune::train {

namespace {

std::string counted(std::int64_t count, const std::string& thing) {
  std::string text = std::to_string(count);
  text.append(" ").append(thing);
  return count == 1 ? text : text.append("s");
}

// "10_sks person/img1.jpg" -> "10_sks person"; "2: a.jpg" -> "2:"; empty for the only folder.
std::string folder_of(const std::string& name) {
  const std::size_t end = name.rfind('/');
  if (end != std::string::npos) return name.substr(0, end);
  const std::size_t colon = name.find(": ");
  return colon == std::string::npos ? "" : "concept " + name.substr(0, colon);
}

struct Part {
  std::string folder;
  std::int64_t photos = 0;
  std::int64_t repeats = 1;
};

std::vector<Part> parts_of(const std::vector<Photo>& photos) {
  std::vector<Part> parts;
  for (const Photo& photo : photos) {
    const std::string folder = folder_of(photo.name);
    if (parts.empty() || parts.back().folder != folder) parts.push_back({folder, 0, photo.repeats});
    ++parts.back().photos;
  }
  return parts;
}

std::string decimal(double value) {
  return fmt::format("{:.3g}", value);
}

}  // namespace

std::vector<std::string> describe_epoch(const std::vector<Photo>& photos, std::int64_t class_images,
                                        const BatchShape& shape) {
  std::int64_t shown = 0;
  std::vector<std::string> counts;
  const std::vector<Part> parts = parts_of(photos);
  for (const Part& part : parts) {
    shown += part.photos * part.repeats;
    std::string& count = counts.emplace_back(counted(part.photos, "photo"));
    if (part.repeats > 1) count.append(" x ").append(std::to_string(part.repeats));
    if (!part.folder.empty()) count.append(" of ").append(part.folder);
  }
  const std::string list = fmt::format("{}", fmt::join(counts, ", "));
  const bool is_sum = parts.size() > 1 || parts.front().repeats > 1;
  const double steps = static_cast<double>(shown) / static_cast<double>(shape.effective());
  std::string line = "one epoch is ";
  line.append(list).append(is_sum ? " = " + counted(shown, "image") : "");
  line.append(", ").append(decimal(steps)).append(steps == 1 ? " step of " : " steps of ");
  line.append(std::to_string(shape.effective()));
  std::vector<std::string> lines = {line};
  if (class_images > 0) {
    std::string second = "each step adds " + counted(shape.effective(), "class image") + ": an epoch shows ";
    const double times = static_cast<double>(shown) / static_cast<double>(class_images);
    if (times >= 1) {
      second.append("all ").append(std::to_string(class_images)).append(", each ").append(decimal(times));
      lines.push_back(second.append(times == 1 ? " time" : " times"));
    } else {
      second.append(std::to_string(shown)).append(" of ").append(std::to_string(class_images));
      lines.push_back(second.append(", and ").append(decimal(1 / times)).append(" epochs show all of them"));
    }
  }
  return lines;
}

std::string describe_auto_captions(const std::vector<Photo>& photos) {
  const auto has_one = [](const Photo& photo) { return !photo.auto_caption.empty(); };
  const auto first = std::find_if(photos.begin(), photos.end(), has_one);
  if (first == photos.end()) return "";
  return "automatic captions of " + counted(std::count_if(photos.begin(), photos.end(), has_one), "photo") +
         ", the first \"" + first->auto_caption + "\"";
}

std::string describe_buckets(const std::vector<model::ImageSize>& sizes, std::int64_t batch) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> photos_of;
  for (const model::ImageSize& size : sizes) ++photos_of[{size.width, size.height}];
  if (photos_of.size() < 2) return "";
  std::string line = "buckets:";
  bool repeats = false;
  for (const auto& [size, photos] : photos_of) {
    line.append(line.back() == ':' ? " " : ", ").append(std::to_string(size.first)).append("x");
    line.append(std::to_string(size.second)).append(" with ").append(counted(photos, "photo"));
    repeats = repeats || photos < batch;
  }
  if (repeats) line.append("; one with fewer photos than a step's ").append(std::to_string(batch));
  return repeats ? line.append(" shows some of them twice in a step") : line;
}

}  // namespace sdtune::train
