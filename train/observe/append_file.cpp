#include "train/observe/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace sdtune::train {

namespace {

std::string reason(int code) {
  return std::generic_category().message(code);
}

}  // namespace

AppendFile::~AppendFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string AppendFile::open(const std::filesystem::path& path) {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  return descriptor_ >= 0 ? "" : reason(errno);
}

std::string AppendFile::append(std::string_view record) {
  if (descriptor_ < 0) return "";
  struct stat before {};
  if (::fstat(descriptor_, &before) != 0) return reason(errno);
  ssize_t written = 0;
  do {
    written = ::write(descriptor_, record.data(), record.size());
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(record.size())) return "";
  const int code = written < 0 ? errno : ENOSPC;
  if (written > 0 && ::ftruncate(descriptor_, before.st_size) != 0) return reason(errno);
  return reason(code);
}

}  // namespace sdtune::train
