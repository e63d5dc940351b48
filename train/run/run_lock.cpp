#include "train/run/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "model/base/error.h"

namespace sdtune::train {

namespace {

std::string host_name() {
  std::array<char, 256> name = {};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown host";
}

std::string content(int descriptor) {
  std::array<char, 512> text = {};
  const ssize_t length = ::pread(descriptor, text.data(), text.size() - 1, 0);
  return length > 0 ? std::string(text.data(), static_cast<std::size_t>(length)) : "another process";
}

}  // namespace

RunLock::RunLock(const std::filesystem::path& file) {
  descriptor_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw StorageError(file.string(), std::string("cannot create: ") + std::strerror(errno));
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    const int reason = errno;
    const std::string holder = content(descriptor_);
    ::close(descriptor_);
    if (reason == EWOULDBLOCK) {
      throw ConfigError(file.parent_path().string(), "another run is writing here (" + holder + ")",
                        "wait for it, or choose another --output");
    }
    throw StorageError(file.string(), std::string("cannot lock: ") + std::strerror(reason));
  }
  const std::string holder = "process " + std::to_string(::getpid()) + " on " + host_name();
  // The text only helps people: the lock holds without it, also on a full disk.
  if (::ftruncate(descriptor_, 0) == 0 && ::pwrite(descriptor_, holder.data(), holder.size(), 0) < 0) return;
}

RunLock::~RunLock() {
  ::close(descriptor_);
}

}  // namespace sdtune::train
