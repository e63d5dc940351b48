#include "train/preflight/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "model/base/error.h"
#include "train/dist/host_name.h"

namespace sdtune::train {

namespace {

std::string content(int descriptor) {
  std::array<char, 512> text = {};
  const ssize_t length = ::pread(descriptor, text.data(), text.size() - 1, 0);
  return length > 0 ? std::string(text.data(), static_cast<std::size_t>(length)) : "another process";
}

Problem held_by(const std::filesystem::path& file, int descriptor) {
  return {file.parent_path().string(), "another run is writing here (" + content(descriptor) + ")",
          "wait for it, or choose another --output"};
}

// Where the file system has no such locks, for example.
Problem not_lockable(const std::filesystem::path& file, int reason) {
  return {file.string(), std::string("cannot lock: ") + std::strerror(reason),
          "the disk must have flock (mount Lustre with -o flock), or choose another --output"};
}

// Several tries: `check` holds the lock for an instant when it asks.
bool try_lock(int descriptor) {
  for (int attempt = 0; attempt < 5; ++attempt) {
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  errno = EWOULDBLOCK;
  return false;
}

}  // namespace

RunLock::RunLock(const std::filesystem::path& file) {
  descriptor_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw StorageError(file.string(), std::string("cannot create: ") + std::strerror(errno));
  if (!try_lock(descriptor_)) {
    const int reason = errno;
    const Problem held = held_by(file, descriptor_);
    ::close(descriptor_);
    if (reason == EWOULDBLOCK) throw ConfigError({held});
    throw StorageError({not_lockable(file, reason)});
  }
  holder_ = ::getpid();
  const std::string holder = "process " + std::to_string(holder_) + " on " + host_name();
  // The text only helps people: the lock holds without it, also on a full disk.
  if (::ftruncate(descriptor_, 0) == 0 && ::pwrite(descriptor_, holder.data(), holder.size(), 0) < 0) return;
}

std::optional<Problem> RunLock::holder(const std::filesystem::path& file) {
  std::error_code status;
  if (std::filesystem::is_directory(file, status))
    return Problem{file.string(), "is a folder, and the run locks a file of this name", "choose another --output"};
  int descriptor = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  const bool is_as_the_run_opens_it = descriptor >= 0;  // NFS locks no file that is open for reading alone
  if (!is_as_the_run_opens_it) descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return std::nullopt;  // no run was begun here, or what is wrong is said by the lock itself
  std::optional<Problem> problem;
  if (!try_lock(descriptor)) {
    const int reason = errno;
    if (reason == EWOULDBLOCK) {
      problem = held_by(file, descriptor);
    } else if (is_as_the_run_opens_it) {
      problem = not_lockable(file, reason);
    }
  }
  ::close(descriptor);
  return problem;
}

// Closing alone would leave it to a process that was forked meanwhile, whose copy is of the same open file; and such a
// process, where it unwinds itself, must not give up its parent's.
RunLock::~RunLock() {
  if (::getpid() == holder_) ::flock(descriptor_, LOCK_UN);
  ::close(descriptor_);
}

}  // namespace sdtune::train
