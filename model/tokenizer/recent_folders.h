// What was made of a folder's files the last times, so that a run that needs its tokenizer at its check, its loading
// and its report reads it once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace sdtune {

// Which files a folder holds, as far as stat tells: device, number, size and time of change of each name; zeros for one
// that is not there.
using FolderStamp = std::vector<std::array<std::int64_t, 5>>;
FolderStamp stamp_of_files(const std::filesystem::path& folder, const std::vector<std::string>& names);

// Whether the newest change is a second ago or more. A file that has just changed may change again within what its time
// resolves, and look the same.
bool is_settled(const FolderStamp& stamp);

// Keeps the `most` last ones. All methods may be called from several threads.
template <class Value>
class RecentFolders {
 public:
  explicit RecentFolders(std::size_t most) : most_(most) {}

  // Null where the folder was not read, or its files have changed since.
  std::shared_ptr<const Value> find(const std::filesystem::path& folder, const FolderStamp& stamp) const {
    const std::lock_guard lock(mutex_);
    for (const Entry& entry : entries_) {
      if (entry.folder == folder && entry.stamp == stamp) return entry.value;
    }
    return nullptr;
  }

  // `stamp`: from before the files were read, so that a change meanwhile is seen the next time. Keeps nothing of files
  // that have just changed.
  void keep(const std::filesystem::path& folder, FolderStamp stamp, std::shared_ptr<const Value> value) {
    if (!is_settled(stamp)) return;
    const std::lock_guard lock(mutex_);
    std::erase_if(entries_, [&](const Entry& entry) { return entry.folder == folder; });
    if (entries_.size() >= most_) entries_.erase(entries_.begin());
    entries_.push_back({folder, std::move(stamp), std::move(value)});
  }

 private:
  struct Entry {
    std::filesystem::path folder;
    FolderStamp stamp;
    std::shared_ptr<const Value> value;
  };

  const std::size_t most_;
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;  // the oldest first
};

}  // namespace sdtune
