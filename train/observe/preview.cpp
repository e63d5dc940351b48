#include "train/observe/preview.h"

#include <array>
#include <cstdio>
#include <utility>

#include "model/image/grid.h"
#include "model/image/image_read.h"
#include "model/image/png_write.h"

namespace sdtune::train {

namespace {

std::string picture_name(std::size_t index, std::uint64_t seed) {
  std::array<char, 48> name{};
  std::snprintf(name.data(), name.size(), "%02zu_seed-%llu.png", index, static_cast<unsigned long long>(seed));
  return name.data();
}

constexpr const char* kGrid = "grid.png";

// Those of an earlier attempt; none unless all are there.
std::vector<Image> read_pictures(const std::filesystem::path& folder, const std::vector<std::uint64_t>& seeds) {
  std::vector<Image> pictures;
  std::error_code absent;
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    const std::filesystem::path path = folder / picture_name(i, seeds[i]);
    if (!std::filesystem::exists(path, absent)) return {};
    pictures.push_back(model::read_image(path));
  }
  return pictures;
}

}  // namespace

std::filesystem::path preview_folder(const std::filesystem::path& samples, std::int64_t step) {
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "step-%08lld", static_cast<long long>(step));
  return samples / name.data();
}

bool has_preview(const std::filesystem::path& samples, std::int64_t step, std::int64_t count) {
  const std::filesystem::path folder = preview_folder(samples, step);
  if (count > 1) return std::filesystem::exists(folder / kGrid);  // written last
  return std::filesystem::exists(folder) && !std::filesystem::is_empty(folder);
}

std::string preview_png(const ValidationEvent& event, std::size_t index) {
  return model::encode_png(event.pictures.at(index), {{"prompt", event.prompts.at(index)},
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
    problem.hint = "training goes on without these pictures";
    warn_(problem);
  }
}

void Preview::write(const ValidationEvent& event) {
  if (event.pictures.empty()) return;
  const std::filesystem::path folder = preview_folder(samples_, event.step);
  files_.create_directories(folder);
  for (std::size_t i = 0; i < event.pictures.size(); ++i) {
    write_file_atomically(files_, folder / picture_name(i, event.seeds.at(i)), preview_png(event, i));
  }
  if (event.step == 0) base_ = event.pictures;
  if (base_.empty()) base_ = read_pictures(preview_folder(samples_, 0), event.seeds);
  write_grid(event, folder);
}

void Preview::write_grid(const ValidationEvent& event, const std::filesystem::path& folder) {
  const bool has_base = event.step > 0 && base_.size() == event.pictures.size();
  if (event.pictures.size() < 2 && !has_base) return;
  std::vector<Image> pictures;
  model::GridLayout layout;
  const auto add_row = [&](const std::vector<Image>& row, const std::string& whose) {
    pictures.insert(pictures.end(), row.begin(), row.end());
    for (const std::uint64_t seed : event.seeds) layout.captions.push_back(whose + "seed " + std::to_string(seed));
  };
  if (has_base) {
    layout.columns = static_cast<std::int64_t>(event.pictures.size());
    add_row(base_, "base, ");
  }
  add_row(event.pictures, has_base ? "step " + std::to_string(event.step) + ", " : "");
  model::write_png(files_, folder / kGrid, model::make_grid(pictures, layout));
}

}  // namespace sdtune::train
