// Where the reader of rendered people comes from. The trainer links neither renderer nor classifier: whoever starts a
// run hands this in (train/portrait/evaluate/classifier_reader_source.h has the one of the portrait classifier).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "model/base/error.h"
#include "train/config/identity_options.h"
#include "train/identity/identity_reader.h"

namespace sdtune::train {

class PortraitReaderSource {
 public:
  virtual ~PortraitReaderSource() = default;

  // Whether one is named by the options or installed.
  virtual bool has_reader(const IdentityOptions& options) const = 0;
  // What keeps it from being used, without loading its weights; empty where nothing does.
  virtual std::vector<Problem> problems(const IdentityOptions& options) const = 0;
  // Throws WeightError.
  virtual std::unique_ptr<IdentityReader> load(const IdentityOptions& options) const = 0;
  // What its scores depend on, for the digest of an evaluation.
  virtual std::vector<std::filesystem::path> files(const IdentityOptions& options) const = 0;
  // px: it reads squares of this side. Throws WeightError.
  virtual std::int64_t side(const IdentityOptions& options) const = 0;
};

}  // namespace sdtune::train
