#include "model/files/read_pieces.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "model/base/error.h"
#include "model/files/file_system.h"

namespace sdtune {
namespace {

class ReadFile {
 public:
  // O_NONBLOCK: opening a FIFO must not wait for a writer. A device may have no end.
  ReadFile(const std::filesystem::path& path, PageCache cache)
      : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (descriptor_ < 0) fail();
    struct stat info {};
    if (::fstat(descriptor_, &info) != 0 || !S_ISREG(info.st_mode)) {
      ::close(descriptor_);
      throw DataError(path_.string(), "is not a file");
    }
    drops_ = cache == PageCache::kDrop && info.st_size >= kLargeFile;
#if defined(__linux__)
    ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_SEQUENTIAL);
#endif
  }
  ~ReadFile() {
    drop(read_);
    ::close(descriptor_);
  }
  ReadFile(const ReadFile&) = delete;
  ReadFile& operator=(const ReadFile&) = delete;

  // How many bytes there were; 0 at the end.
  std::size_t next(std::span<std::byte> buffer) {
    ssize_t count = -1;
    do {
      count = ::read(descriptor_, buffer.data(), buffer.size());
    } while (count < 0 && errno == EINTR);
    if (count < 0) fail();
    read_ += count;
    constexpr std::int64_t kPiece = std::int64_t{32} << 20;
    if (read_ - dropped_ >= kPiece) drop(read_);
    return static_cast<std::size_t>(count);
  }

 private:
  [[noreturn]] void fail() const {
    throw DataError(path_.string(), std::string("cannot read: ") + std::strerror(errno));
  }
  void drop(std::int64_t end) {
#if defined(__linux__)
    if (drops_) ::posix_fadvise(descriptor_, dropped_, end - dropped_, POSIX_FADV_DONTNEED);
#endif
    dropped_ = end;
  }

  std::filesystem::path path_;
  int descriptor_;
  bool drops_ = false;
  std::int64_t read_ = 0, dropped_ = 0;
};

}  // namespace

void read_pieces(const std::filesystem::path& path, PageCache cache,
                 const std::function<void(std::span<const std::byte>)>& use) {
  ReadFile file(path, cache);
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  while (const std::size_t count = file.next(buffer)) use(std::span(buffer).first(count));
}

}  // namespace sdtune
