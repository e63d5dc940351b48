// A run without the portrait classifier, which the trainer does not link.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "train/identity/portrait_reader_source.h"

namespace sdtune::test {

class NoPortraitReaders final : public train::PortraitReaderSource {
 public:
  bool has_reader(const train::IdentityOptions&) const override { return false; }
  std::vector<Problem> problems(const train::IdentityOptions&) const override { return {}; }
  std::unique_ptr<train::IdentityReader> load(const train::IdentityOptions&) const override { return nullptr; }
  std::vector<std::filesystem::path> files(const train::IdentityOptions&) const override { return {}; }
  std::int64_t side(const train::IdentityOptions&) const override { return 64; }
};

}  // namespace sdtune::test
