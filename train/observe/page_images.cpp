#include "train/observe/page_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>

#include "model/base/error.h"
#include "model/files/base64.h"
#include "model/files/file_system.h"
#include "model/image/image_read.h"
#include "model/image/png_text.h"
#include "model/image/png_write.h"
#include "train/observe/html_text.h"

namespace sdtune::train {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostPhotos = 12, kMostStepsShown = 10;
constexpr std::size_t kMostPairs = 16;                                        // as many as report_images allows
constexpr std::int64_t kPhotoSide = 160, kImageSide = 256, kStripSide = 112;  // px, longest: 3 MB of photos together
constexpr std::int64_t kSmall = 100;  // px: images below this are enlarged with their pixels as squares

// The images of a folder whose names begin so, in order.
std::vector<fs::path> images_in(const fs::path& folder, const std::string& prefix) {
  std::vector<fs::path> found;
  std::error_code absent;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, absent)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(".png") && name.find("seed-") != std::string::npos) {
      found.push_back(entry.path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string seed_of(const fs::path& image) {
  const std::string name = image.stem().string();
  return name.substr(name.find("seed-") + 5);
}

// samples/step-00000100 -> its images, in the order of the steps.
std::map<std::int64_t, std::vector<fs::path>> validations(const ReportState& state, const fs::path& run) {
  std::map<std::int64_t, std::vector<fs::path>> found;
  std::error_code absent;
  for (const fs::directory_entry& entry : fs::directory_iterator(run / "samples", absent)) {
    const std::string name = entry.path().filename().string();
    std::int64_t step = 0;
    if (!name.starts_with("step-")) continue;
    const auto [end, status] = std::from_chars(name.data() + 5, name.data() + name.size(), step);
    if (!state.has_validation(step)) continue;
    std::vector<fs::path> images = images_in(entry.path(), "");
    if (status == std::errc() && !images.empty()) found[step] = std::move(images);
  }
  return found;
}

// What changes with a file's content, since a file of the same name may be another one by the next page.
std::string version_of(const fs::path& file) {
  std::error_code no_size, no_time;
  const std::uintmax_t size = fs::file_size(file, no_size);
  const auto time = static_cast<std::int64_t>(fs::last_write_time(file, no_time).time_since_epoch().count());
  return no_size || no_time ? "" : std::to_string(size) + ' ' + std::to_string(time);
}

std::string content_of(const fs::path& file) {
  try {
    return is_file(file) ? read_file(file) : std::string();
  } catch (const DataError&) {
    return {};
  }
}

std::optional<std::string> prompt_of(const fs::path& image) {
  return model::find_png_text(content_of(image), "prompt");
}

std::string figure(const std::string& image, const std::string& caption, const char* style = "") {
  if (image.empty()) return {};
  return std::string("<figure") + style + ">" + image + "<figcaption>" + caption + "</figcaption></figure>\n";
}

std::string value_at(const std::map<std::int64_t, double>& values, std::int64_t step, const char* format) {
  const auto found = values.find(step);
  return found == values.end() ? "" : "<br>" + fmt::format(fmt::runtime(format), found->second);
}

}  // namespace

fs::path comparison_folder(const fs::path& run) {
  return run / "comparison";
}

std::string PageImages::image(const fs::path& path, const std::string& description, std::int64_t longest) {
  const std::string key = path.string() + '\n' + version_of(path) + '\n' + description + '\n' + std::to_string(longest);
  const auto [known, is_new] = known_.try_emplace(key);
  if (!is_new) return known->second;
  try {
    const model::Preview seen = model::preview_image(read_file(path), path.string(), longest);
    const bool is_small = std::max(seen.image.width, seen.image.height) < kSmall;
    known->second = "<img" + std::string(is_small ? " class=\"small\"" : "") + " alt=\"" + html_escaped(description) +
                    fmt::format("\" width=\"{}\" height=\"{}\"", seen.image.width, seen.image.height) +
                    " src=\"data:image/png;base64," + base64(model::encode_png(seen.image)) + "\">";
  } catch (const Error&) {
    known->second.clear();  // the page is worth having without it
  }
  return known->second;
}

std::string PageImages::photos(const ReportData& data) {
  std::string html;
  std::size_t shown = 0, all = 0;
  for (const Json& photo : data.record.value("images", Json::array())) {
    ++all;
    if (shown == kMostPhotos || !photo.is_object() || !photo.value("path", Json()).is_string()) continue;
    const fs::path path = photo["path"].get<std::string>();
    const std::string tag = image(path, "photo " + path.filename().string(), kPhotoSide);
    if (!tag.empty()) ++shown;
    html += tag + (tag.empty() ? "" : "\n");
  }
  if (html.empty()) return {};
  const std::string rest = all > shown ? "<p class=\"soft\">and " + std::to_string(all - shown) + " more</p>\n" : "";
  return "<div class=\"photos\">\n" + html + "</div>\n" + rest;
}

std::string PageImages::comparison(const ReportState& state, const ReportData& data) {
  const fs::path own = comparison_folder(data.folder);
  std::vector<fs::path> base = images_in(own, "base-"), model = images_in(own, "model-");
  std::string prompt = content_of(own / "prompt.txt");
  std::string model_name = "model";
  if (base.empty() || model.empty()) {
    const std::map<std::int64_t, std::vector<fs::path>> steps = validations(state, data.folder);
    if (steps.size() < 2 || steps.begin()->first != 0) return {};
    base = steps.begin()->second;
    model = steps.rbegin()->second;
    if (prompt_of(base.front()) != prompt_of(model.front())) return {};  // another one since the run was resumed
    model_name = "step " + std::to_string(steps.rbegin()->first);
    prompt = prompt_of(model.front()).value_or("");  // config.yaml may have the next one already
  }
  std::string rows[2];
  for (std::size_t i = 0; i < std::min({base.size(), model.size(), kMostPairs}); ++i) {
    const std::string seed = ", seed " + seed_of(model[i]);
    rows[0] += figure(image(base[i], "base" + seed, kImageSide), "base" + html_escaped(seed));
    rows[1] += figure(image(model[i], model_name + seed, kImageSide), html_escaped(model_name + seed));
  }
  const std::string said = prompt.empty() ? "" : "<p>" + html_escaped(prompt) + "</p>\n";
  return said + "<div class=\"pairs\">\n" + rows[0] + "</div>\n<p></p>\n<div class=\"pairs\">\n" + rows[1] + "</div>\n";
}

std::string PageImages::over_steps(const ReportState& state, const ReportData& data) {
  const std::map<std::int64_t, std::vector<fs::path>> steps = validations(state, data.folder);
  const auto likeness = ReportData::values(data.identity, "identity");
  const auto loss = ReportData::values(data.validation, "loss");
  std::string html;
  std::size_t index = 0;
  const std::size_t stride = (steps.size() + kMostStepsShown - 1) / kMostStepsShown;
  for (const auto& [step, images] : steps) {
    const bool is_shown = index % std::max<std::size_t>(stride, 1) == 0 || index + 1 == steps.size();
    ++index;
    if (!is_shown) continue;
    html += figure(image(images.front(), "step " + std::to_string(step), kStripSide),
                   (step == 0 ? "base" : "step " + std::to_string(step)) + value_at(likeness, step, "likeness {:.2f}") +
                       value_at(loss, step, "validation loss {:.4f}"),
                   " class=\"seen\"");
  }
  return html.empty() ? "" : "<div class=\"strip\">\n" + html + "</div>\n";
}

}  // namespace sdtune::train
