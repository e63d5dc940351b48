#include "model/files/growing_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "model/base/error.h"
#include "model/files/posix_file.h"

namespace sdtune {

std::unique_ptr<OutputFile> append_to_file(const std::filesystem::path& path) {
  return std::make_unique<PosixOutputFile>(path, O_APPEND);
}

void replace_link(const std::filesystem::path& target, const std::filesystem::path& link) {
  const std::filesystem::path partial = partial_name(link);
  ::unlink(partial.c_str());  // of a process that was killed
  if (::symlink(target.c_str(), partial.c_str()) != 0) {
    throw StorageError(link.string(), std::string("cannot make the link: ") + std::strerror(errno));
  }
  real_file_system().rename(partial, link);
}

}  // namespace sdtune
