#include "model/files/posix_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "model/base/error.h"

namespace sdtune {
namespace {

constexpr std::int64_t kPiece = std::int64_t{16} << 20;  // bytes that are handed to the disk at once

}  // namespace

void throw_storage_error(const std::filesystem::path& path, const std::string& doing, int reason) {
  const std::string hint = reason == ENOSPC || reason == EDQUOT ? "free some space, or choose another --output" : "";
  throw StorageError(path.string(), "cannot " + doing + ": " + std::strerror(reason), hint);
}

PosixOutputFile::PosixOutputFile(std::filesystem::path path, int mode) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | mode, 0666);
  if (descriptor_ < 0) throw_storage_error(path_, "create", errno);
  written_ = handed_over_ = left_ =
      std::max<std::int64_t>(::lseek(descriptor_, 0, SEEK_END), 0);  // of what O_APPEND found
}

PosixOutputFile::~PosixOutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void PosixOutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto most = static_cast<std::size_t>(kPiece - (written_ - handed_over_));
    const ssize_t written = ::write(descriptor_, bytes.data(), std::min(bytes.size(), most));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_storage_error(path_, "write", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    written_ += written;
    start_writeback();
  }
}

// So that the disk works while the next bytes are computed: the system by itself waits for a tenth of the memory. What
// fails here, the wait for it or sync() will tell.
void PosixOutputFile::start_writeback() {
#if defined(__linux__)
  if (written_ - handed_over_ < kPiece) return;
  ::sync_file_range(descriptor_, handed_over_, written_ - handed_over_, SYNC_FILE_RANGE_WRITE);
  if (written_ >= kLargeFile) leave_page_cache(handed_over_);
#endif
  handed_over_ = written_;
}

// What lies before `end`, once the disk has it. An error that this wait tells, fsync does not tell again.
void PosixOutputFile::leave_page_cache([[maybe_unused]] std::int64_t end) {
#if defined(__linux__)
  constexpr unsigned kWait = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  if (::sync_file_range(descriptor_, left_, end - left_, kWait) != 0) {
    const bool is_unknown = errno == EINVAL || errno == ENOSYS || errno == ESPIPE;  // to this kind of file system
    if (!is_unknown) throw_storage_error(path_, "write", errno);
  }
  ::posix_fadvise(descriptor_, left_, end - left_, POSIX_FADV_DONTNEED);
  left_ = end;
#endif
}

void PosixOutputFile::sync() {
  if (::fsync(descriptor_) != 0) throw_storage_error(path_, "sync", errno);
#if defined(__linux__)
  if (written_ >= kLargeFile) ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED);
#endif
}

void PosixOutputFile::close() {
  const int descriptor = std::exchange(descriptor_, -1);
  if (::close(descriptor) != 0) throw_storage_error(path_, "close", errno);
}

}  // namespace sdtune
