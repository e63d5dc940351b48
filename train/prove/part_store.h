// The folder of `sdtune prove`: whose proof it is, and what its parts have found so far.
//
//   identity.json        of what base, photos and device
//   parts/NAME.json      the result of a part that is over
//   work/                records, logs and runs of the parts
//   prove.json, prove.html, send_in.txt
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "model/files/file_system.h"
#include "train/prove/part_result.h"

namespace sdtune::train {

class PartStore {
 public:
  // Makes the folder, or takes the one of an earlier call. `identity`: texts by name. Throws ConfigError where the
  // folder has another identity, naming the first thing that differs, and where it holds files of something else.
  PartStore(FileSystem& files, std::filesystem::path root, const Json& identity);

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path work() const { return root_ / "work"; }

  // What an earlier call found; unset where the part is not over. A part that was skipped is tried again.
  std::optional<PartResult> find(const std::string& part) const;
  void keep(const PartResult& result) const;

 private:
  std::filesystem::path file_of(const std::string& part) const { return root_ / "parts" / (part + ".json"); }

  FileSystem& files_;
  std::filesystem::path root_;
};

}  // namespace sdtune::train
