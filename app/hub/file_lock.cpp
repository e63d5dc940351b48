#include "app/hub/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "model/base/error.h"
#include "model/files/file_system.h"

namespace sdtune::app {

FileLock::FileLock(const std::filesystem::path& path, const char* notice) {
  create_parent_folder(real_file_system(), path);
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw StorageError(path.string(), std::string("cannot create: ") + std::strerror(errno));
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  if (errno == EWOULDBLOCK && notice != nullptr) {
    std::fprintf(stderr, "waiting  %s\n", notice);
    errno = EWOULDBLOCK;
  }
  // Some network file systems have no locks: huggingface_hub goes on without them too.
  while (errno == EWOULDBLOCK || errno == EINTR) {
    if (::flock(descriptor_, LOCK_EX) == 0) return;
  }
}

FileLock::~FileLock() {
  ::close(descriptor_);
}

}  // namespace sdtune::app
