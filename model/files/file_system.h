// The one door through which durable bytes go to disk. Checkpoints, model files, manifests and caches are written
// through it, so tests can stop it at any operation, fail it, or replay a power loss.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/error.h"

namespace sdtune {

// From this size on, bytes, a file that is written does not stay in the system's page cache: it would displace what a
// training needs, and memory that the system must find for it first is dearer than the disk.
inline constexpr std::int64_t kLargeFile = std::int64_t{256} << 20;

// A file being written, in order. Every method throws StorageError naming the path and the system's reason.
class OutputFile {
 public:
  virtual ~OutputFile() = default;  // closes without sync when close() was not called
  virtual void write(std::span<const std::byte> bytes) = 0;
  virtual void sync() = 0;  // fsync; after a failure the file must be discarded, never synced again
  virtual void close() = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual std::unique_ptr<OutputFile> create(const std::filesystem::path& path) = 0;  // truncates
  virtual void rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  virtual void sync_directory(const std::filesystem::path& path) = 0;
  virtual void create_directories(const std::filesystem::path& path) = 0;
  virtual void unlink(const std::filesystem::path& path) = 0;       // a file
  virtual void remove_tree(const std::filesystem::path& path) = 0;  // a folder and all in it, by unlink
};

// The operating system's.
FileSystem& real_file_system();

// The name that a file has until it is whole, where one process alone writes it: hidden, beside it.
std::filesystem::path partial_name(const std::filesystem::path& path);

// Makes the folder that the file is to lie in, with those above it, where it is missing.
void create_parent_folder(FileSystem& files, const std::filesystem::path& path);

// Writes a whole file so that after a crash either the old or the new content is there: temporary name beside it,
// fsync, rename, fsync of the folder. The temporary name is that of this writing alone, so that processes that write
// one file at the same time, class images of two runs for example, leave it whole: the last of them wins. What killed
// processes left beside `path` under such names is removed once it is an hour old.
void write_file_atomically(FileSystem& files, const std::filesystem::path& path, std::string_view content);

// The same of content that `write` hands over piece by piece. Whatever it throws comes through, and the file is then
// what it was.
void write_file_atomically(FileSystem& files, const std::filesystem::path& path,
                           const std::function<void(OutputFile&)>& write);

// For a file that is read again before it counts: `write` makes it under partial_name(path), reads it there and throws
// where it is not what it should be. It gets its name then, and a file that was there is what it was until then and
// whenever `write` throws.
void write_verified_file(FileSystem& files, const std::filesystem::path& path,
                         const std::function<void(const std::filesystem::path& partial)>& write);

// Whether there is a regular file; false too where that cannot be known.
bool is_file(const std::filesystem::path& path);

// What is wrong with a path in a folder called "~", which the option `where` names: a shell puts the user's folder
// there, but not in --output=~/x and in no file.
std::optional<Problem> tilde_problem(const std::string& where, const std::filesystem::path& path);

// The folder's own name, also of "runs/me/" and of ".".
std::string folder_name(const std::filesystem::path& folder);

// The whole file. Throws `DataError` naming the path when it cannot be read or is larger than max_bytes.
std::string read_file(const std::filesystem::path& path, std::size_t max_bytes = std::size_t{1} << 30);

}  // namespace sdtune
