// A disk that stores one bit other than it was given, for tests of what is read back.
#pragma once

#include <filesystem>
#include <fstream>

#include "tests/support/faulty_file_system.h"

namespace sdtune::test {

// Passes on to the real one, and flips the last bit of the first file that is renamed, before it gets its name.
class BitFlipFileSystem : public FaultyFileSystem {
 public:
  void rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    if (!flipped_) {
      std::fstream file(from, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(-1, std::ios::end);
      const int last = file.get();
      file.seekp(-1, std::ios::end);
      file.put(static_cast<char>(last ^ 1));
    }
    flipped_ = true;
    FaultyFileSystem::rename(from, to);
  }

 private:
  bool flipped_ = false;
};

}  // namespace sdtune::test
