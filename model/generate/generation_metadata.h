// All that it takes to generate an image again, as JSON in the image file: the options, and what the model and the
// files that they name were by content. `sample --like` reads it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/error.h"
#include "model/base/json.h"
#include "model/generate/generate_options.h"
#include "model/options/settings.h"

namespace sdtune::model {

// The key of the text in the PNG file.
inline constexpr std::string_view kMetadataKey = "sdtune";

// A model and the files that options name, as they are now.
struct ImageSources {
  std::string model;                              // what --model finds it by; "" for the bundled base
  std::string model_name;                         // for people
  std::string fingerprint;                        // of the model's content
  std::map<std::string, std::string> files;       // SHA-256 by what the option says
  std::map<std::string, std::string> loras = {};  // their lora_model_hash by lora_text
};

// What a model's folder is called; a finished run's name, which says more than its "model" folder.
std::string model_name(const std::filesystem::path& folder);

// `folder` is where the model is, `given` what the user named it by, which may be empty. Throws DataError or
// WeightError for a file that cannot be read.
ImageSources read_sources(const std::filesystem::path& folder, const std::string& given,
                          const GenerateOptions& options);

// The images that were generated at once: an image's place among them changes its last bits.
struct ImageBatch {
  std::int64_t first_seed = 0;
  std::int64_t count = 1;
};

// `options` with the image's own prompt and seed, as ImageGenerator::resolved returns them.
Json generation_metadata(const GenerateOptions& options, const ImageSources& sources, const ImageBatch& batch);

// What an image's metadata say, put into options.
struct AppliedMetadata {
  ImageBatch batch;
  std::optional<std::string> model;          // to find it by; unset: not said
  std::string fingerprint;                   // of the model; empty: not known
  std::map<std::string, std::string> files;  // as in ImageSources
  std::vector<Problem> warnings;             // what is not taken over
  // "Clip skip" of A1111's text, unless the option was given: what it means depends on the model.
  std::optional<std::int64_t> a1111_clip_skip = {};
};

// Sets every option of the metadata that is not among `given`. Throws ConfigError naming `where` for JSON of another
// kind, and the option for a value that it does not take or a file that does not exist.
AppliedMetadata apply_metadata(const Json& metadata, const std::string& where, const Origins& given,
                               GenerateOptions& options);

// Model and files that have changed since the image was generated, so that it will differ.
std::vector<Problem> find_changes(const AppliedMetadata& metadata, const ImageSources& now);

}  // namespace sdtune::model
