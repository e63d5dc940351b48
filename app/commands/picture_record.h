// All that it takes to draw a picture again, as JSON in the picture: the options, and what the model and the files that
// they name were by content. `sample --like` reads it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "app/commands/sample_options.h"
#include "model/base/error.h"
#include "model/base/json.h"
#include "train/config/settings.h"

namespace sdtune::app {

// The key of the text in the PNG file.
inline constexpr std::string_view kRecordKey = "sdtune";

// A model and the files that options name, as they are now.
struct DrawingSources {
  std::string model;                         // what --model finds it by; "" for the embedded base
  std::string model_name;                    // for people
  std::string fingerprint;                   // of the model's content
  std::map<std::string, std::string> files;  // SHA-256 by what the option says
};

// `folder` is where the model is. Throws DataError or WeightError for a file that cannot be read.
DrawingSources read_sources(const std::filesystem::path& folder, const SampleOptions& options);

// The pictures that were drawn at once: which one of them a picture is matters to its last bit.
struct DrawnBatch {
  std::int64_t first_seed = 0;
  std::int64_t count = 1;
};

// `options` with the picture's own prompt and seed.
Json picture_record(const SampleOptions& options, const DrawingSources& sources, const DrawnBatch& batch);

// What a picture's texts say, put into options.
struct AppliedRecord {
  DrawnBatch batch;
  std::string fingerprint;                   // of the model; empty: not known
  std::map<std::string, std::string> files;  // as in DrawingSources
  std::vector<Problem> warnings;             // what is not taken over
};

// Sets every option of the record that is not among `given`. Throws ConfigError naming `where` for a record that is
// none, and the option for a value that it does not take or a file that is not there.
AppliedRecord apply_record(const Json& record, const std::string& where, const train::Origins& given,
                           SampleOptions& options);

// What is not what it was when the picture was drawn: it will come out otherwise.
std::vector<Problem> find_changes(const AppliedRecord& record, const DrawingSources& now);

}  // namespace sdtune::app
