// The folder that `render` writes: images, a caption beside each, and labels.jsonl.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "model/files/file_system.h"

namespace sdtune::train::portrait {

// labels.jsonl gets its name last, so a folder that has it is finished; until then it grows under a hidden name and
// already lists the files that are being written. Images are not synced one by one: the same command renders them
// again.
class RenderFolder {
 public:
  // Makes the folder. Throws ConfigError when it holds anything, unless `overwrite`: then what a finished or
  // interrupted render listed there is removed, and other files stay.
  RenderFolder(FileSystem& files, std::filesystem::path folder, bool overwrite);

  // Writes NAME.png, and NAME.txt unless the caption is empty; `label` is a line of labels.jsonl about NAME.png. Throws
  // ConfigError when a file that no render listed has one of these names, StorageError when the disk refuses.
  void add(const std::string& name, const std::string& png, const std::string& caption, const std::string& label);

  // Ends labels.jsonl and returns its path. Nothing is added after.
  std::filesystem::path finish();

 private:
  void remove_listed_files(const std::filesystem::path& labels);
  void write_new(const std::filesystem::path& path, const std::string& content);

  FileSystem& files_;
  std::filesystem::path folder_;
  std::unique_ptr<OutputFile> labels_;
};

}  // namespace sdtune::train::portrait
