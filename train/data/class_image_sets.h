// Which class images the subjects of a run need, and the settings that they are generated with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "model/base/json.h"
#include "train/config/concept_options.h"
#include "train/data/class_images.h"

namespace sdtune::train {

// The class images of one prompt.
struct ClassImageSet {
  std::string prompt;
  std::filesystem::path folder;
  std::int64_t count = 0;
};

// In the order of the subjects. Subjects with the same class_prompt and class_data_dir share their images: as many as
// the one that wants most. Where subjects with different prompts share a folder, each further prompt has a subfolder of
// its own, named by a number.
std::vector<ClassImageSet> class_image_sets(const std::vector<ConceptOptions>& concepts);

// Images of all sets.
std::int64_t class_image_count(const std::vector<ConceptOptions>& concepts);

// The base that generates them.
struct ClassImageBase {
  std::string hash;             // of its files
  std::string scheduler_class;  // as in model_index.json
  Json scheduler_config;        // scheduler_config.json, as read
};

// options: with a resolution.
ClassImageSettings class_image_settings(const ClassImageSet& set, const DataOptions& options, std::uint64_t seed,
                                        const ClassImageBase& base);

}  // namespace sdtune::train
