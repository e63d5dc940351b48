#include "model/tokenizer/recent_folders.h"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>

namespace sdtune {

FolderStamp stamp_of_files(const std::filesystem::path& folder, const std::vector<std::string>& names) {
  FolderStamp stamp;
  stamp.reserve(names.size());
  for (const std::string& name : names) {
    struct stat found = {};
    if (::stat((folder / name).c_str(), &found) != 0) found = {};
    stamp.push_back({static_cast<std::int64_t>(found.st_dev), static_cast<std::int64_t>(found.st_ino),
                     static_cast<std::int64_t>(found.st_size), static_cast<std::int64_t>(found.st_mtim.tv_sec),
                     static_cast<std::int64_t>(found.st_mtim.tv_nsec)});
  }
  return stamp;
}

bool is_settled(const FolderStamp& stamp) {
  std::int64_t newest = 0;
  for (const auto& file : stamp) newest = std::max(newest, file[3]);
  return std::time(nullptr) > newest + 1;
}

}  // namespace sdtune
