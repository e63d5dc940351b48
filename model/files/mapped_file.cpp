#include "model/files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "model/base/error.h"
#include "model/files/file_system.h"

namespace sdtune {

MappedFile::MappedFile(const std::filesystem::path& path, PageCache cache) : path_(path) {
  const auto fail = [&](int reason) {
    throw WeightError(path.string(), std::string("cannot read: ") + std::strerror(reason));
  };
  // Looked at before it is opened, because opening a device can do something; and after, because it may have been
  // swapped. O_NONBLOCK: opening a FIFO must not wait for a writer.
  struct stat before {};
  if (::stat(path.c_str(), &before) != 0) fail(errno);
  if (!S_ISREG(before.st_mode)) throw WeightError(path.string(), "is not a file");
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) fail(errno);
  struct stat info {};
  const int stat_result = ::fstat(descriptor, &info);
  const int stat_reason = errno;
  if (stat_result != 0 || !S_ISREG(info.st_mode)) {
    ::close(descriptor);
    if (stat_result != 0) fail(stat_reason);
    throw WeightError(path.string(), "is not a file");
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  void* address = size == 0 ? nullptr : ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  const int map_reason = errno;
  if (cache == PageCache::kDrop && info.st_size >= kLargeFile && address != MAP_FAILED) {
    to_drop_ = descriptor;
  } else {
    ::close(descriptor);
  }
  if (address == MAP_FAILED) fail(map_reason);
  bytes_ = {static_cast<const std::byte*>(address), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  if (to_drop_ >= 0) ::close(to_drop_);
}

void MappedFile::release(std::span<const std::byte> part) const {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto offset = static_cast<std::size_t>(part.data() - bytes_.data());
  const std::size_t begin = (offset + page - 1) / page * page;
  const std::size_t end = (offset + part.size()) / page * page;
  if (begin >= end) return;
  // Only advice: where it is refused, nothing but memory is lost.
  ::madvise(const_cast<std::byte*>(bytes_.data()) + begin, end - begin, MADV_DONTNEED);
#if defined(__linux__)
  if (to_drop_ >= 0)
    ::posix_fadvise(to_drop_, static_cast<off_t>(begin), static_cast<off_t>(end - begin), POSIX_FADV_DONTNEED);
#endif
}

}  // namespace sdtune
