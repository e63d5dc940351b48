#include "model/files/file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <mutex>
#include <random>
#include <set>

#include "model/base/error.h"
#include "model/files/posix_file.h"

namespace sdtune {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOfOneWriting = ".partial-";  // and 16 random digits
constexpr std::size_t kRandomDigits = 16;
// A process that writes a file changes it all the time: one that has not changed for so long was left by a kill.
constexpr std::chrono::hours kLeftAfter{1};

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

// No number of a process would do: those of two containers, or of two machines that share a disk, may be the same.
fs::path name_of_one_writing(const fs::path& path) {
  std::random_device random;
  std::array<char, kRandomDigits + 1> digits = {};
  std::snprintf(digits.data(), digits.size(), "%08x%08x", random(), random());
  std::string name = ".";
  name.append(path.filename().string()).append(kOfOneWriting).append(digits.data());
  return path.parent_path() / name;
}

bool is_name_of_one_writing(const std::string& name) {
  const std::size_t mark = name.rfind(kOfOneWriting);
  if (!name.starts_with('.') || mark == std::string::npos) return false;
  const std::size_t digits = mark + kOfOneWriting.size();
  return name.size() == digits + kRandomDigits &&
         name.find_first_not_of("0123456789abcdef", digits) == std::string::npos;
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// Why a writing failed is what matters, and another process may have removed what was left, so a failure is nothing.
void unlink_quietly(FileSystem& files, const fs::path& path) {
  std::error_code status;
  if (!fs::exists(path, status)) return;
  try {
    files.unlink(path);
  } catch (const StorageError&) {
  }
}

// Whether this process asks about the folder for the first time: a thousand images do not need it listed each time.
bool is_first_look(const fs::path& folder) {
  static std::mutex mutex;
  static std::set<fs::path> seen;
  std::error_code status;
  const fs::path whole = fs::absolute(folder, status);
  const std::lock_guard lock(mutex);
  return !status && seen.insert(whole).second;
}

// What killed processes left in the folder of `own`, which was just made: its time is that of the disk's own clock.
void remove_left_files(FileSystem& files, const fs::path& own) {
  const fs::path folder = folder_of(own);
  if (!is_first_look(folder)) return;
  std::error_code status;
  const fs::file_time_type now = fs::last_write_time(own, status);
  if (status) return;
  std::vector<fs::path> left;
  for (fs::directory_iterator at(folder, status), end; !status && at != end; at.increment(status)) {
    if (!is_name_of_one_writing(at->path().filename().string())) continue;
    std::error_code gone;
    const fs::file_time_type changed = fs::last_write_time(at->path(), gone);
    if (!gone && now - changed > kLeftAfter) left.push_back(at->path());
  }
  for (const fs::path& path : left) unlink_quietly(files, path);
}

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

void write_file_atomically(FileSystem& files, const fs::path& path, const std::function<void(OutputFile&)>& write) {
  const fs::path partial = name_of_one_writing(path);
  try {
    const std::unique_ptr<OutputFile> file = files.create(partial);
    remove_left_files(files, partial);  // before the bytes, which may need their room
    write(*file);
    file->sync();
    file->close();
    files.rename(partial, path);
  } catch (...) {
    unlink_quietly(files, partial);  // no later writing has this name
    throw;
  }
  files.sync_directory(folder_of(path));
}

void write_file_atomically(FileSystem& files, const fs::path& path, std::string_view content) {
  write_file_atomically(files, path, [&](OutputFile& file) { file.write(std::as_bytes(std::span(content))); });
}

void write_verified_file(FileSystem& files, const fs::path& path,
                         const std::function<void(const fs::path& partial)>& write) {
  const fs::path partial = partial_name(path);
  try {
    write(partial);
    files.rename(partial, path);
  } catch (...) {
    unlink_quietly(files, partial);
    throw;
  }
  files.sync_directory(folder_of(path));
}

bool is_file(const fs::path& path) {
  std::error_code status;
  return fs::is_regular_file(path, status);
}

std::optional<Problem> tilde_problem(const std::string& where, const fs::path& path) {
  if (path.empty() || *path.begin() != "~") return std::nullopt;
  return Problem{where, "begins with ~, which only a shell replaces (got " + path.string() + ")",
                 "write the whole path"};
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
