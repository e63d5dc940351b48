#include "model/files/file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "model/base/error.h"
#include "model/files/posix_file.h"

namespace sdtune {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const std::string& doing, int reason) {
  throw_storage_error(path, doing, reason);
}

class PosixFileSystem : public FileSystem {
 public:
  std::unique_ptr<OutputFile> create(const fs::path& path) override {
    return std::make_unique<PosixOutputFile>(path, O_TRUNC);
  }
  void rename(const fs::path& from, const fs::path& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) fail(to, "rename " + from.filename().string() + " to it", errno);
  }
  void sync_directory(const fs::path& path) override {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) fail(path, "open", errno);
    const int result = ::fsync(descriptor);
    const int reason = errno;
    ::close(descriptor);
    // Some network file systems have no fsync for folders and say so; they order metadata themselves.
    if (result != 0 && reason != EINVAL && reason != ENOTSUP) fail(path, "sync", reason);
  }
  void create_directories(const fs::path& path) override {
    std::error_code error;
    fs::create_directories(path, error);
    if (error) fail(path, "create the folder", error.value());
  }
  void unlink(const fs::path& path) override {
    if (::unlink(path.c_str()) != 0) fail(path, "remove", errno);
  }
  void remove_tree(const fs::path& path) override {
    std::error_code error;
    fs::remove_all(path, error);
    if (error) fail(path, "remove", error.value());
  }
};

}  // namespace

FileSystem& real_file_system() {
  static PosixFileSystem files;
  return files;
}

fs::path partial_name(const fs::path& path) {
  std::string name = path.filename().string();
  name.insert(0, 1, '.');
  name.append(".partial");
  return path.parent_path() / name;
}

void create_parent_folder(FileSystem& files, const fs::path& path) {
  if (path.has_parent_path()) files.create_directories(path.parent_path());
}

void write_file_atomically(FileSystem& files, const fs::path& path, std::string_view content) {
  const fs::path partial = partial_name(path);
  const std::unique_ptr<OutputFile> file = files.create(partial);
  file->write(std::as_bytes(std::span(content)));
  file->sync();
  file->close();
  files.rename(partial, path);
  files.sync_directory(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

bool is_file(const fs::path& path) {
  std::error_code status;
  return fs::is_regular_file(path, status);
}

std::string folder_name(const fs::path& folder) {
  const fs::path whole = fs::absolute(folder).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

std::string read_file(const fs::path& path, std::size_t max_bytes) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    throw DataError(path.string(), std::string("cannot read: ") + std::strerror(errno));
  if (!S_ISREG(info.st_mode)) throw DataError(path.string(), "is not a file");
  if (static_cast<std::size_t>(info.st_size) > max_bytes) {
    throw DataError(path.string(), "is too large (got " + std::to_string(info.st_size) +
                                       " bytes; allowed: " + std::to_string(max_bytes) + ")");
  }
  std::ifstream stream(path, std::ios::binary);
  std::string content(static_cast<std::size_t>(info.st_size), '\0');
  if (!stream.read(content.data(), static_cast<std::streamsize>(content.size()))) {
    throw DataError(path.string(), std::string("cannot read: ") + std::strerror(errno));
  }
  return content;
}

}  // namespace sdtune
