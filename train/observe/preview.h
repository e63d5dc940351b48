// The validation images as files: samples/step-00000100/00_seed-7.png, ..., and grid.png where there are several or
// the base's, those of step 0, can stand above them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "model/files/file_system.h"
#include "train/observe/metrics_log.h"
#include "train/observe/observer.h"

namespace sdtune::train {

// Where the images of `step` go: samples/step-00000100.
std::filesystem::path preview_folder(const std::filesystem::path& samples, std::int64_t step);
// The file of image `index` there: 00_seed-7.png.
std::string preview_name(std::size_t index, std::uint64_t seed);
// Whether all `count` images of `step` are there.
bool has_preview(const std::filesystem::path& samples, std::int64_t step, std::int64_t count);

// Image `index` of a validation as PNG, with its prompt, seed and step as texts.
std::string preview_png(const ValidationEvent& event, std::size_t index);

class Preview : public Observer {
 public:
  // `warn` may be empty; it is called once when the images cannot be written, and the run continues.
  Preview(FileSystem& files, Warn warn);

  void on_start(const RunSummary& summary) override;
  void on_validation(const ValidationEvent& event) override;

 private:
  void write(const ValidationEvent& event);
  void write_grid(const ValidationEvent& event, const std::filesystem::path& folder);

  FileSystem& files_;
  Warn warn_;
  bool warned_ = false;
  std::filesystem::path samples_;
  std::vector<Image> base_;  // the images of step 0, of this attempt or of an earlier one with the same prompt
};

}  // namespace sdtune::train
