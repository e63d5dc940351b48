// The images of report.html: photos, base and model side by side, validation images over the steps.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "train/observe/report_data.h"
#include "train/observe/report_sections.h"

namespace sdtune::train {

// Where base and model of the end lie, if they were generated for the report: base-00_seed-0.png, model-00_seed-0.png.
// Of the model that the run folder has then: training further removes the folder.
std::filesystem::path comparison_folder(const std::filesystem::path& run);

class PageImages {
 public:
  // The first photos of run.json, as squares; those that cannot be read any more are left out.
  std::string photos(const ReportData& data);
  // Base and model of the same prompts and seeds: those of comparison_folder, else the first and the last validation's.
  // Empty where there is only one of them.
  std::string comparison(const ReportState& state, const ReportData& data);
  // The first image of the validations, 10 steps at most, with what was measured at each.
  std::string over_steps(const ReportState& state, const ReportData& data);

 private:
  // "<img ...>" of an image, at most `longest` px a side; empty where it cannot be read. Each file is read once, and
  // again when it has changed.
  std::string image(const std::filesystem::path& path, const std::string& description, std::int64_t longest);

  std::map<std::string, std::string> known_;  // by path, time and size of the file, description and size
};

}  // namespace sdtune::train
