#include "train/observe/preview.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "model/image/grid.h"
#include "model/image/image_read.h"
#include "model/image/png_text.h"
#include "model/image/png_write.h"

namespace sdtune::train {

namespace {

constexpr const char* kGrid = "grid.png";

// Those of an earlier attempt with these seeds and prompts; none unless all are there. A resumed run may have another
// prompt, and images of two say nothing of what was learned.
std::vector<Image> read_images(const std::filesystem::path& folder, const ValidationEvent& event) {
  std::vector<Image> images;
  std::error_code absent;
  for (std::size_t i = 0; i < event.seeds.size(); ++i) {
    const std::filesystem::path path = folder / preview_name(i, event.seeds[i]);
    if (!std::filesystem::exists(path, absent)) return {};
    const std::string bytes = read_file(path);
    if (model::find_png_text(bytes, "prompt") != event.prompts.at(i)) return {};
    images.push_back(model::decode_image(bytes, path.string()));
  }
  return images;
}

}  // namespace

std::string preview_name(std::size_t index, std::uint64_t seed) {
  return fmt::format("{:02}_seed-{}.png", index, seed);
}

std::filesystem::path preview_folder(const std::filesystem::path& samples, std::int64_t step) {
  return samples / fmt::format("step-{:08}", step);
}

bool has_preview(const std::filesystem::path& samples, std::int64_t step, std::int64_t count) {
  const std::filesystem::path folder = preview_folder(samples, step);
  if (count > 1) return std::filesystem::exists(folder / kGrid);  // written last
  return std::filesystem::exists(folder) && !std::filesystem::is_empty(folder);
}

std::string preview_png(const ValidationEvent& event, std::size_t index) {
  return model::encode_png(event.images.at(index), {{"prompt", event.prompts.at(index)},
                                                    {"seed", std::to_string(event.seeds.at(index))},
                                                    {"step", std::to_string(event.step)}});
}

Preview::Preview(FileSystem& files, Warn warn) : files_(files), warn_(std::move(warn)) {}

void Preview::on_start(const RunSummary& summary) {
  samples_ = summary.output / "samples";
}

void Preview::on_validation(const ValidationEvent& event) {
  try {
    write(event);
  } catch (const Error& error) {
    if (std::exchange(warned_, true) || !warn_) return;
    Problem problem = error.problems().front();
    problem.hint = "training continues without these images";
    warn_(problem);
  }
}

void Preview::write(const ValidationEvent& event) {
  if (event.images.empty()) return;
  const std::filesystem::path folder = preview_folder(samples_, event.step);
  files_.create_directories(folder);
  for (std::size_t i = 0; i < event.images.size(); ++i) {
    write_file_atomically(files_, folder / preview_name(i, event.seeds.at(i)), preview_png(event, i));
  }
  if (event.step == 0) base_ = event.images;
  if (base_.empty()) base_ = read_images(preview_folder(samples_, 0), event);
  write_grid(event, folder);
}

void Preview::write_grid(const ValidationEvent& event, const std::filesystem::path& folder) {
  const bool has_base = event.step > 0 && base_.size() == event.images.size();
  if (event.images.size() < 2 && !has_base) return;
  std::vector<Image> images;
  model::GridLayout layout;
  const auto add_row = [&](const std::vector<Image>& row, const std::string& whose) {
    images.insert(images.end(), row.begin(), row.end());
    for (const std::uint64_t seed : event.seeds) layout.captions.push_back(whose + "seed " + std::to_string(seed));
  };
  if (has_base) {
    layout.columns = static_cast<std::int64_t>(event.images.size());
    add_row(base_, "base, ");
  }
  add_row(event.images, has_base ? "step " + std::to_string(event.step) + ", " : "");
  model::write_png(files_, folder / kGrid, model::make_grid(images, layout));
}

}  // namespace sdtune::train
