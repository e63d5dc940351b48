// run.json: what is needed to repeat or explain a run.
#pragma once

#include <cstdint>
#include <filesystem>

#include "model/base/json.h"
#include "model/files/file_system.h"
#include "train/run/run.h"

namespace sdtune::train {

struct RecordedAttempts {
  Json earlier;              // attempt_ledger.h
  std::int64_t started = 0;  // this one, s since 1970
};

// Writes config.yaml (every resolved value with its origin) and run.json: versions, device, seed, config hash, image
// manifest, and the ledger of attempts, to which this one is added.
void write_run_record(FileSystem& files, const Run& run, const RecordedAttempts& attempts);

// last_error.json, the same words as the error line. Never throws: the error itself is what matters.
void write_last_error(FileSystem& files, const RunFolder& folder, const Error& error) noexcept;

}  // namespace sdtune::train
